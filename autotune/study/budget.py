"""How much a study may do and how sure it must be.

What a study may still spend, in machine seconds and in launches.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from autotune.errors import WorkError
from autotune.study.run_history import RunHistory

KEPT_SHARE = 0.4
"""Of what a budget holds beyond two of the smallest searches: less leaves settings whole and gains
undecided, more proves no more."""
KEPT_MOST = 350
"""Runs: four rounds of taking parameters out, six settings in eight blocks each, and a whole proof
of three finalists."""


@dataclass(frozen=True)
class SearchPlan:
    """Budgets and error rates of one search.

    ``trials`` counts settings; ``budget_s`` machine seconds and ``max_runs`` launches of the whole
    study, its confirmation included; None for any of them means no bound from it.  ``alpha`` is the
    chance of a false recommendation, ``min_gain`` the smallest gain worth naming.  None of the
    budgets is part of the study's identity: the same study goes on with a larger one.
    """

    trials: int | None = 100
    budget_s: float | None = None
    max_runs: int | None = None
    alpha: float = 0.05
    min_gain: float = 0.02
    finalists: int = 3
    default_every: int = 8
    """Search runs between two runs of the default."""
    first_defaults: int = 2
    limit_factor: float = 3.0
    """A run longer than this multiple of the default is stopped and stored as censored."""
    limit_slack_s: float = 1.0
    promising_runs: int = 2
    """Runs that a setting gets before it may become the best so far."""
    race_share: float = 0.25
    """Runs beyond the first, per setting tried, that search and race may use."""
    race_least: int = 4
    """Such runs that are allowed, and kept back by a budget, however few settings there are."""
    prune_blocks: int = 8
    reserve_blocks: int = 12
    """Blocks of the confirmation that a budget keeps back."""

    def extra_runs(self, settings: int) -> int:
        """Runs beyond the first of each of so many settings that search and race may use."""
        return max(math.ceil(self.race_share * settings), self.race_least)

    @property
    def least_runs(self) -> int:
        """The smallest bound on runs under which one setting can be tried and proven."""
        warming_up = 1
        return warming_up + self.first_defaults + self.race_least + self.proof_runs(1) + 1

    def kept_runs(self, held: float) -> int:
        """Runs that search and race leave of a budget of ``held`` runs: the smallest proof, and of
        what is beyond two of the smallest searches a share for taking parameters out and for a
        proof that may go on until it is decided."""
        beyond = max(held - 2 * self.least_runs, 0.0)
        return self.proof_runs(1) + int(min(KEPT_SHARE * beyond, KEPT_MOST))

    def proof_runs(self, finalists: int) -> int:
        """Runs of the smallest proof of so many finalists."""
        return self.reserve_blocks * (finalists + 1)


class BudgetTooSmall(WorkError):
    """What was asked for cannot be had, not even in part, for the budget that was given."""


class BudgetSpent(WorkError):
    """Nothing may be started any more.  Who meets it ends what it does with what is there."""


@dataclass(frozen=True)
class Budget:
    """Bounds on what ``history`` may grow to; None for either means no bound.

    ``seconds`` are spent inside launches; ``runs`` counts every launch, rejected ones included.
    Plans are made by :meth:`affords`, an estimate.  An evaluator asks :meth:`require` before each
    launch, so that what the estimate did not see is at most the run under way.
    """

    history: RunHistory
    seconds: float | None = None
    runs: int | None = None

    def from_here(self) -> Budget:
        """The same allowance, counted from what the run history holds now."""
        return Budget(
            self.history,
            None if self.seconds is None else self.seconds + self.history.launched_s,
            None if self.runs is None else self.runs + len(self.history.entries),
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
        return None if self.seconds is None else max(self.seconds - self.history.launched_s, 0.0)

    def require(self) -> None:
        """Raise BudgetSpent where no further launch may be started."""
        if self.left_s == 0 or (self.runs is not None and len(self.history.entries) >= self.runs):
            raise BudgetSpent("the budget is spent")

    def affords(self, runs: int, run_s: float | None = None) -> bool:
        """Whether so many more runs fit in: of ``run_s`` seconds, or about as long as the
        default's."""
        history = self.history
        cost = self.cost_s(runs) if run_s is None else run_s * runs
        return (self.seconds is None or history.launched_s + cost <= self.seconds) and (
            self.runs is None or len(history.entries) + runs <= self.runs
        )

    def cost_s(self, runs: int) -> float:
        """Machine seconds that so many runs about as long as the default take."""
        walls = [record.wall_s for record in self.history.default_records()]
        return statistics.median(walls) * runs if walls else 0.0
