# make demo: set up, audit a real model, say where the results are.   make test: set up, lint, type-check, run all tests.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
BIN := .venv/bin
# Wheels only: set-up compiles nothing. (pip still builds belie itself, which is plain Python.)
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --only-binary :all: -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint types tests format clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

setup: .venv/.ready  ## Make the virtual environment

.venv/.ready: pyproject.toml constraints.txt
	@echo "Setting up .venv (about a minute) …"
	@$(PYTHON) -m venv .venv
	@$(PIP) -e '.[local,report,dev]' 2>&1 | { grep -v '^WARNING: Location' || true; }
	@$(BIN)/python -c 'import belie, torch, transformers'
	@touch $@

demo: setup  ## Audit SmolLM2-135M with the quick preset: no key, no GPU, no server
	@$(BIN)/belie models fetch smollm2-135m
	@$(BIN)/belie audit local/smollm2-135m

test: lint types tests  ## Lint, type-check, run all tests

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup
	@$(BIN)/pyright

tests: setup
	@$(BIN)/pytest

format: setup  ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean:  ## Remove the virtual environment and caches (runs/ stays)
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis build dist src/*.egg-info
