"""What a study may still spend, in machine seconds and in launches."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from autotune.errors import WorkError
from autotune.study.ledger import Ledger


class BudgetTooSmall(WorkError):
    """What was asked for cannot be had, not even in part, for the budget that was given."""


class BudgetSpent(WorkError):
    """Nothing may be started any more.  Who meets it ends what it does with what is there."""


@dataclass(frozen=True)
class Budget:
    """Bounds on what ``ledger`` may grow to; None for either means no bound.

    ``seconds`` are spent inside launches; ``runs`` counts every launch, rejected ones included.
    Plans are made by :meth:`affords`, an estimate.  A bench asks :meth:`require` before each
    launch, so that what the estimate did not see is at most the run under way.
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

    def require(self) -> None:
        """Raise BudgetSpent where no further launch may be started."""
        if self.left_s == 0 or (self.runs is not None and len(self.ledger.entries) >= self.runs):
            raise BudgetSpent("the budget is spent")

    def affords(self, runs: int, run_s: float | None = None) -> bool:
        """Whether so many more runs fit in: of ``run_s`` seconds, or about as long as the
        default's."""
        ledger = self.ledger
        cost = self.cost_s(runs) if run_s is None else run_s * runs
        return (self.seconds is None or ledger.launched_s + cost <= self.seconds) and (
            self.runs is None or len(ledger.entries) + runs <= self.runs
        )

    def cost_s(self, runs: int) -> float:
        """Machine seconds that so many runs about as long as the default take."""
        walls = [record.wall_s for record in self.ledger.default_records()]
        return statistics.median(walls) * runs if walls else 0.0
