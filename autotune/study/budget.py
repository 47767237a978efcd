"""What a study may still spend, in machine seconds and in launches."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from autotune.errors import WorkError
from autotune.study.ledger import Ledger


class BudgetTooSmall(WorkError):
    """What was asked for cannot be had, not even in part, for the budget that was given."""


@dataclass(frozen=True)
class Budget:
    """Bounds on what ``ledger`` may grow to; None for either means no bound.

    ``seconds`` are spent inside launches; ``runs`` counts every launch, rejected ones included.
    """

    ledger: Ledger
    seconds: float | None = None
    runs: int | None = None

    def from_here(self) -> Budget:
        """The same allowance, counted from what the ledger holds now."""
        return Budget(
            self.ledger,
            None if self.seconds is None else self.seconds + self.ledger.launched_s,
            None if self.runs is None else self.runs + len(self.ledger.entries),
        )

    def at_least(self, runs: int) -> Budget:
        """This budget, or so many more runs where it holds less: a reserve that is always there."""
        ledger = self.ledger
        return Budget(
            ledger,
            None
            if self.seconds is None
            else max(self.seconds, ledger.launched_s + self.cost_s(runs)),
            None if self.runs is None else max(self.runs, len(ledger.entries) + runs),
        )

    @property
    def holds(self) -> float:
        """Runs about as long as the default's that all of it holds; infinite without a bound."""
        run_s = self.cost_s(1)
        by_time = self.seconds / run_s if self.seconds is not None and run_s else math.inf
        return min(by_time, math.inf if self.runs is None else self.runs)

    @property
    def left_s(self) -> float | None:
        """Machine seconds that are left, none below zero; None where they are not bounded."""
        return None if self.seconds is None else max(self.seconds - self.ledger.launched_s, 0.0)

    def affords(self, runs: int) -> bool:
        """Whether so many more runs, about as long as the default's, fit in."""
        ledger = self.ledger
        return (self.seconds is None or ledger.launched_s + self.cost_s(runs) <= self.seconds) and (
            self.runs is None or len(ledger.entries) + runs <= self.runs
        )

    def cost_s(self, runs: int) -> float:
        """Machine seconds that so many runs about as long as the default take."""
        walls = [record.wall_s for record in self.ledger.default_records()]
        return statistics.median(walls) * runs if walls else 0.0
