"""A strategy and an objective of one's own, passed as objects."""

import os
import sys

import autotune

RUNS = int(os.environ.get("AUTOTUNE_EXAMPLE_RUNS", "80"))


SCRIPT = """
from mpi4py import MPI
for _ in range(3000):
    MPI.COMM_WORLD.allreduce(1)
"""


class OneByOne(autotune.Strategy):
    """Tries every level of every parameter alone, in the order of the space."""

    name = "one-by-one"
    summary = "every level of every parameter, one at a time"

    def propose(self) -> autotune.Proposal | None:
        for parameter in self.space:
            for level in parameter.choices:
                if level is None:
                    continue
                setting = self.space.canonical(autotune.Setting({parameter.name: level}))
                if self.is_new(setting) and not self.space.violations(setting):
                    return autotune.Proposal(setting)
        return None


def cpu_seconds(run) -> float:
    """What is minimised: the CPU time of all ranks, not the time until the last one ends."""
    return run.cpu_s


def main() -> None:
    study = autotune.tune(
        [sys.executable, "-c", SCRIPT],
        ranks=2,
        strategy=OneByOne,
        objective=cpu_seconds,
        runs=RUNS,
        store="examples.db",
    )
    print(study.trials().sort_values("estimate").head(5).to_string(index=False))
    print(f"{study.result.status}: {study.best.setting.key}")


if __name__ == "__main__":
    main()
