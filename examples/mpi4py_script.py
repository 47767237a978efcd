"""Measure an mpi4py script: the smallest visible gain, and whether a setting has a gain."""

import sys
from pathlib import Path

import autotune

SCRIPT = """
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
values, total = np.ones(1 << 13), np.empty(1 << 13)
comm.Barrier()
start = MPI.Wtime()
for _ in range(2000):
    comm.Allreduce(values, total)
if comm.rank == 0:
    print(f"loop: {MPI.Wtime() - start:.6f} s")
"""


def main() -> None:
    Path("allreduce.py").write_text(SCRIPT)
    target = autotune.target([sys.executable, "allreduce.py"], ranks=2, metric=r"loop: (\S+)")

    report = autotune.noise(target, runs=6, store="examples.db")
    best = min(row.gain for row in report.rows)
    print(f"runs scatter by {report.spread:.1%}; gains from {best:.1%} can be found")

    outcome = autotune.compare(
        "default", "btl_sm_eager_limit=64k", target, pairs=6, store="examples.db"
    )
    print(f"{outcome.verdict}: {outcome.words}")


if __name__ == "__main__":
    main()
