#!/bin/bash
# One core a task: sbatch --array=1-"$(wc -l < cores.txt)" slurm.sh
# cores.txt has a path a line; then: heapcore fleet rows
#SBATCH --job-name=heapcore
#SBATCH --time=01:00:00
#SBATCH --mem=8G
#SBATCH --cpus-per-task=1

core=$(sed -n "${SLURM_ARRAY_TASK_ID}p" cores.txt)
mkdir -p rows
# The last row says whether the core could be analysed: that one could not be is no failure of the task.
rows=rows/$SLURM_ARRAY_TASK_ID.ndjson
heapcore -q --threads 1 --max-memory 7G --format ndjson "$core" facts >"$rows" || grep -q '"facts core"' "$rows"
