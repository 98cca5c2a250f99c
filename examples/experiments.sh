#!/usr/bin/env bash
# Every experiment once, small, on one model: make experiments. Recipes with larger sizes: docs/experiments/.
#
#   bash examples/experiments.sh [MODEL] [FOLDER]
set -euo pipefail

model=${1:-local/smollm2-135m}
to=${2:-runs/experiments-$(date -u +%Y%m%d-%H%M%S)}
mkdir -p "$to"

step() { printf '\n=== %s\n' "$*" >&2; "$@"; }

# The same chains in six worlds, under four treatments, with other distances, temperatures and wordings.
step belie csq experiment worlds "$model" --n 3,5 --chains 20 -o "$to/worlds"
step belie csq experiment treatments "$model" --n 3,5 --chains 20 -o "$to/treatments"
step belie csq experiment k "$model" --n 10 --chains 20 -o "$to/k"
step belie csq experiment temperature "$model" --n 3,5 --chains 20 -o "$to/temperature"
step belie csq experiment phrasing "$model" --n 3 --chains 10 -o "$to/phrasing"
step belie csq experiment order "$model" --n 3 --chains 20 -o "$to/order"
step belie csq experiment enumerate "$model" --n 3 --chains 5 --max-tokens 64 -o "$to/enumerate"
step belie csq experiment votes "$model" --n 3 --chains 20 --draws 9 -o "$to/votes"

# Is it deception, guessing or difficulty? And what it says when it is asked about its own answers.
step belie csq run "$model" --n 3,5,10 --chains 30 --sample --followups all -o "$to/asked"
step belie csq explain "$to/asked"
step belie csq interview "$to/asked" --confidence --confront --limit 5
step belie csq run "$model" --n 3,5,10 --chains 40 -o "$to/exact"
step belie csq embed "$model" --run "$to/exact" --permutations 500
step belie csq run "$model" --n 3 --chains 5 --style reason --max-tokens 128 -o "$to/reasoned"
step belie csq traces "$to/reasoned"

# Wordings by the model itself (a small model makes none that can be used, and says so with exit code 3), other questions.
step belie csq paraphrase "$model" --attempts 12 --max-tokens 400 -o "$to/contacts-by-model.yaml" || [ $? -eq 3 ]
for pairs in arithmetic programs; do
  step belie pairs run "$pairs" "$model" -o "$to/$pairs"
done

step belie report "$to"/{worlds,treatments,k,temperature,phrasing,order,enumerate,votes,asked,exact,reasoned,arithmetic,programs} -o "$to/report.html"
