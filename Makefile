# make demo: set up, audit a real model, make a report.   make test: set up, lint, type-check, run all tests.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
BIN := .venv/bin
# Wheels only: set-up compiles nothing. (pip still builds belie itself, which is plain Python.)
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --only-binary :all: -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint types tests browser experiments train-demo bench format clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

setup: .venv/.ready  ## Make the virtual environment

.venv/.ready: pyproject.toml constraints.txt
	@echo "Setting up .venv (a minute or two) …"
	@$(PYTHON) -m venv .venv
	@$(PIP) -e '.[local,report,ray,train,dev]'
	@$(BIN)/python -c 'import belie, torch, transformers'
	@touch $@

DEMO := runs/demo-$(shell date -u +%Y%m%d-%H%M%S)
SCRIPTED := --customer belie/scripted-verifying --judge belie/scripted-judge-perfect

demo: setup  ## Audit SmolLM2-135M (no key, no GPU, no server), play two scripted agents, make the report
	@$(BIN)/belie models fetch smollm2-135m
	@$(BIN)/belie csq run local/smollm2-135m --preset quick -o $(DEMO)/csq-smollm2-135m
	@echo; echo "KnownLie needs a capable customer and judge; here it plays two scripted agents of known behaviour (belie/scripted-…)."
	@$(BIN)/belie knownlie run belie/scripted-incentive-liar $(SCRIPTED) -o $(DEMO)/knownlie-incentive-liar --json > /dev/null
	@$(BIN)/belie knownlie run belie/scripted-honest $(SCRIPTED) --trust neutral -o $(DEMO)/knownlie-honest --json > /dev/null
	@$(BIN)/belie report $(DEMO)/csq-smollm2-135m $(DEMO)/knownlie-incentive-liar $(DEMO)/knownlie-honest -o $(DEMO)/report.html

test: lint types tests  ## Lint, type-check, run all tests

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup
	@$(BIN)/pyright

tests: setup browser
	@$(BIN)/pytest

# The report is tested in a real browser: Debian's, installed here where it is missing and we may.
browser:
	@if ! command -v chromium >/dev/null || ! command -v chromedriver >/dev/null; then \
	  if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	    echo "Installing Debian's chromium for the tests of the report …"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null; \
	  else echo "No chromium and chromedriver here: the tests of the report in a browser are skipped."; fi; fi

experiments: setup  ## Run every experiment once, small, on SmolLM2-135M
	@$(BIN)/belie models fetch smollm2-135m
	@PATH="$(abspath $(BIN)):$$PATH" bash examples/experiments.sh

train-demo: setup  ## Audit, make data, train, audit again: SmolLM2-135M
	@$(BIN)/belie models fetch smollm2-135m
	@PATH="$(abspath $(BIN)):$$PATH" bash examples/train-demo.sh

bench: setup  ## Measure side by side with peers; writes docs/benchmarks.md
	@$(BIN)/python bench/all.py

format: setup  ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean:  ## Remove the virtual environment and caches (runs/ stays)
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis build dist src/*.egg-info
