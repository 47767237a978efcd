"""Draws the second half of the planted faults: their classes, launchers, ranks and threads.

The draw was made before any rule was written; ``planted.toml`` has the lines that were written for
it, in its order.
"""

from __future__ import annotations

import random
from typing import NamedTuple

SEED = 66
NUMBER = 15
CLASSES = (
    "one world",
    "library of the program",
    "masks of ranks",
    "masks of threads",
    "threads against cores",
    "cgroup quota",
    "cpuset",
    "slots",
    "two ranks on one core",
    "two jobs on one core",
    "transport",
    "single copy",
    "parameter unknown",
    "parameter misspelt",
    "parameter of another version",
    "parameter of the wrong layer",
    "parameter overridden",
    "parameter without effect",
    "algorithm wrong for an operation",
    "start-up time",
    "oversubscription without yield",
    "waiting policy of threads",
    "variables of Slurm",
    "huge pages and NUMA balancing",
)
LAUNCHERS = ("openmpi 5.0.11", "openmpi 4.1.4", "mpich 4.2.0", "impi 2021.12.0", "srun")


class Draw(NamedTuple):
    """One fault to be planted; ``threads`` is the number of threads of each rank."""

    kind: str
    launcher: str
    ranks: int
    threads: int
    cores: int


def drawn() -> list[Draw]:
    """The draw; the launcher is one of those that can have the fault, where not all can."""
    dice = random.Random(SEED)
    return [
        Draw(
            kind,
            dice.choice(LAUNCHERS),
            dice.choice((2, 4, 8, 16)),
            dice.choice((2, 4, 8)),
            dice.choice((4, 8, 16, 64)),
        )
        for kind in dice.sample(CLASSES, NUMBER)
    ]
