#!/usr/bin/env bash
# Audit → data → training → audit → effect, on a real model of 135M parameters and two processor cores: imitation (SFT),
# preference (DPO) and reinforcement with CSQ as verifiable reward (GRPO), each compared with the model before.
# Usage: examples/train-demo.sh [FOLDER]      STEPS=30 CHAINS=40 METHODS="sft dpo grpo" change what is done.
set -euo pipefail

BELIE=${BELIE:-.venv/bin/belie}
MODEL=${MODEL:-local/smollm2-135m}
OUT=${1:-runs/train-demo-$(date -u +%Y%m%d-%H%M%S)}
STEPS=${STEPS:-30}
CHAINS=${CHAINS:-40}
METHODS=${METHODS:-sft dpo grpo}
declare -A FORM=([sft]=sft [dpo]=preference [kto]=unpaired [grpo]=prompts)
# Small batches of short prompts (n = 3); GRPO answers in one token, four to each of two prompts.
declare -A HOW=(
  [sft]="--rate 1e-3 --batch 8"
  [dpo]="--rate 3e-4 --batch 4"
  [kto]="--rate 3e-4 --batch 8"
  [grpo]="--rate 3e-4 --batch 8 --generations 4 --completion 1"
)

began=$SECONDS
step() { echo; echo "── $* ($((SECONDS - began)) s)"; }
audit() { "$BELIE" csq run "$1" --n 3,5 --chains "$CHAINS" -o "$2"; }

"$BELIE" models fetch smollm2-135m
step "Audit of $MODEL before"
audit "$MODEL" "$OUT/before"
for method in $METHODS; do
  step "Data of the recipe honesty, form ${FORM[$method]}: half of the chains at n = 3; n = 5 is held out whole"
  "$BELIE" train data --from "$OUT/before" --recipe honesty --form "${FORM[$method]}" -o "$OUT/data-${FORM[$method]}"
  step "$method, $STEPS steps"
  # shellcheck disable=SC2086
  "$BELIE" train run "$MODEL" --data "$OUT/data-${FORM[$method]}" --method "$method" --steps "$STEPS" ${HOW[$method]} \
    --report-to tensorboard -o "$OUT/adapter-$method"
  step "Audit after $method"
  audit "$MODEL+$OUT/adapter-$method" "$OUT/after-$method"
  step "What $method did, on chains that were not trained on"
  "$BELIE" train effect "$OUT/before" "$OUT/after-$method" --data "$OUT/data-${FORM[$method]}"
done
step "Report"
runs=("$OUT/before")
for method in $METHODS; do runs+=("$OUT/after-$method"); done
"$BELIE" report "${runs[@]}" -o "$OUT/report.html"
step "Done: $OUT (the curves: tensorboard --logdir $OUT)"
