#!/usr/bin/env bash
# One CSQ run as a SLURM array: one task a shard. See slurm.md.
#
#   belie csq run http/my-model --preset paper --engine shards --out /shared/runs/my-run
#   sbatch --array=0-15 examples/slurm_array.sh /shared/runs/my-run
#
#SBATCH --job-name=belie-csq
#SBATCH --cpus-per-task=1
#SBATCH --mem=4G
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --output=belie-%A_%a.log
set -euo pipefail

run=${1:?usage: sbatch --array=0-N slurm_array.sh RUN}

# A task that was killed or requeued asks only what its own journal lacks. The array must be numbered from 0.
exec belie csq shard "$run" \
  --index "$SLURM_ARRAY_TASK_ID" \
  --count "$SLURM_ARRAY_TASK_COUNT" \
  --threads "${SLURM_CPUS_PER_TASK:-1}"
