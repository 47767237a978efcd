"""Search the MATE runtime's own parameters together with those of MPI."""

import os

import autotune

RUNS = int(os.environ.get("AUTOTUNE_EXAMPLE_RUNS", "120"))


def main() -> None:
    study = autotune.tune(
        app="jacobi3d",
        input="tiny",
        space="openmpi+mate",  # Processes, workers, ranks per process, shared-memory transport, ...
        strategy="ga",
        preset="thesis",
        runs=RUNS,
        store="examples.db",
    )
    print(f"{study.result.status}: {study.best.setting.key}")
    for finalist in study.result.finalists:
        print(f"  {finalist.setting.key}: {finalist.words}")


if __name__ == "__main__":
    main()
