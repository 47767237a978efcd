"""One V-cycle as a sequence of stages: their computations, and the values exchanged after each.

A level has two arrays of values. A smoothing reads one and writes the other; the numbers of
smoothings are even, so a level is in array 0 again whenever another level is entered.
"""

from __future__ import annotations

from dataclasses import dataclass

from runner.programs.apps.flowcart.mesh import LEVELS

SMOOTHINGS = 2
COARSE = 6
"""Number of updates on the coarsest level."""


@dataclass(frozen=True)
class Stage:
    """One stage; a rank's neighbours must have finished the stage before.

    ``smooths``: update the level; else sum its residuals into the next level. ``prolongs``: then
    add the new values to the finer level. ``source``: the array of the level that is read.
    """

    level: int
    source: int
    smooths: bool
    prolongs: bool = False

    @property
    def exchange_array(self) -> int:
        """The values that the next stage reads from other ranks: 2 * level + array, -1 for none.

        After a restriction they are zero everywhere.
        """
        if not self.smooths:
            return -1
        return 2 * (self.level - 1) if self.prolongs else 2 * self.level + 1 - self.source


def stages() -> list[Stage]:
    """The stages of one V-cycle."""
    down, up = [], []
    for level in range(LEVELS - 1):
        down += _smoothings(level, SMOOTHINGS, prolongs=False)
        down.append(Stage(level, 0, smooths=False))
    for level in range(LEVELS - 2, -1, -1):
        up += _smoothings(level, SMOOTHINGS, prolongs=level > 0)
    return [*down, *_smoothings(LEVELS - 1, COARSE, prolongs=True), *up]


def _smoothings(level: int, count: int, prolongs: bool) -> list[Stage]:
    return [Stage(level, n % 2, True, prolongs and n == count - 1) for n in range(count)]


CYCLE = stages()
COUNT = len(CYCLE)
# The same as numbers, for compiled regions.
LEVEL = tuple(stage.level for stage in CYCLE)
SOURCE = tuple(stage.source for stage in CYCLE)
SMOOTHS = tuple(int(stage.smooths) for stage in CYCLE)
PROLONGS = tuple(int(stage.prolongs) for stage in CYCLE)
EXCHANGE_ARRAYS = tuple(stage.exchange_array for stage in CYCLE)
