#!/bin/bash
#SBATCH --ntasks=2
#SBATCH --time=00:05:00
export OMP_NUM_THREADS=1
"$LAUNCHER" -np 2 "$@"
