#!/bin/bash
# One core a task: sbatch --array=1-"$(wc -l < cores.txt)" slurm.sh
# cores.txt has a path a line; then: heapcore fleet rows
#SBATCH --job-name=heapcore
#SBATCH --time=01:00:00
#SBATCH --mem=8G
#SBATCH --cpus-per-task=1

core=$(sed -n "${SLURM_ARRAY_TASK_ID}p" cores.txt)
mkdir -p rows
# Rows have their name only when they are complete.
rows=rows/$SLURM_ARRAY_TASK_ID
heapcore -q --threads 1 --max-memory 7G --format ndjson "$core" facts >"$rows.part" &&
	mv "$rows.part" "$rows.ndjson"
