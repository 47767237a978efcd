"""Compile a C program, and find a better setting for it."""

import os
import subprocess
from pathlib import Path

import autotune

HERE = Path(__file__).parent
RUNS = int(os.environ.get("AUTOTUNE_EXAMPLE_RUNS", "120"))


def main() -> None:
    subprocess.run(["mpicc", "-O2", str(HERE / "ring.c"), "-o", "ring"], check=True)
    study = autotune.tune(
        ["./ring", "65536", "2000"],
        ranks=2,
        metric=r"ring time: (\S+) s",
        runs=RUNS,
        params_file="ring.conf",  # Written if a setting is proven; use: mpirun --tune ring.conf
        store="examples.db",
    )
    result = study.result
    print(f"{result.status} after {result.search_runs} + {result.confirmation_runs} runs")
    if result.status == "recommended":
        print(f"gain {result.gain:.1%}: {result.mpirun}")


if __name__ == "__main__":
    main()
