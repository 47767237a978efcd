"""Budgets: how much a study may do, how certain it must be, and what it may still spend.

:class:`SearchPlan` has the bounds and error rates of a search. :class:`Budget` counts machine
seconds and launches.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.errors import WorkError
from autotune.measurement.figure_time import covered_s, is_objective, outside_s
from autotune.measurement.run_history import RunHistory
from autotune.stats import time_limit
from runner.types import RunRecord

KEPT_SHARE = 0.4
"""Share reserved of the budget above two of the smallest searches.

A smaller share leaves settings without pruning and gains undecided; a larger one proves no more.
"""
KEPT_MOST = 350
"""Largest reserve in runs.

It is four rounds of pruning (six settings in eight blocks each) and a complete proof of three
finalists.
"""


@dataclass(frozen=True)
class SearchPlan:
    """Budgets and error rates of one search.

    ``trials`` counts settings. ``budget_s`` bounds the machine seconds and ``max_runs`` the
    launches of the whole study, including its confirmation. None for any of these means no bound.
    ``alpha`` is the chance of a false recommendation, ``min_gain`` the smallest gain that is
    recommended (a fraction). No budget is part of the study's identity: a larger one continues the
    same study.
    """

    trials: int | None = 100
    budget_s: float | None = None
    max_runs: int | None = None
    alpha: float = 0.05
    min_gain: float = 0.02
    finalists: int = 3
    default_every: int = 8
    """Number of search runs between two runs of the default."""
    first_defaults: int = 2
    limit_factor: float = 3.0
    """A run longer than this multiple of the default is stopped and stored as censored."""
    limit_slack_s: float = 1.0
    promising_runs: int = 2
    """Number of runs of a setting before it may become the best so far."""
    race_share: float = 0.25
    """Runs after the first that search and race may use, per tried setting."""
    race_least: int = 4
    """Smallest number of such runs, allowed and reserved in a budget even for few settings."""
    prune_blocks: int = 8
    reserve_blocks: int = 12
    """Number of blocks of the confirmation that a budget reserves."""

    def run_limit_s(self, defaults: Sequence[RunRecord], ratio: float) -> float | None:
        """Wall seconds after which a run is stopped: a multiple of the incumbent's time.

        ``defaults`` are runs of the default, ``ratio`` is the incumbent's ratio to them. None
        before the default was measured. Of an own objective the time says nothing, so the default's
        time is multiplied there.
        """
        if not defaults:
            return None
        return self.limit_slack_s + time_limit(
            statistics.median(covered_s(record) for record in defaults),
            1.0 if is_objective(defaults[-1]) else ratio,
            factor=self.limit_factor,
            overhead_s=outside_s(defaults),
        )

    def extra_runs(self, settings: int) -> int:
        """Number of runs after each setting's first that search and race may use."""
        return max(math.ceil(self.race_share * settings), self.race_least)

    @property
    def least_runs(self) -> int:
        """The smallest bound on runs with which one setting can be tried and proven."""
        warming_up = 1
        return warming_up + self.first_defaults + self.race_least + self.proof_runs(1) + 1

    def kept_runs(self, budget_runs: float) -> int:
        """Number of runs that search and race leave of a budget of ``budget_runs`` runs.

        This is the smallest proof and, of the budget above two of the smallest searches, a share
        for the pruning and for a proof that may go on until it is decided.
        """
        beyond = max(budget_runs - 2 * self.least_runs, 0.0)
        return self.proof_runs(1) + int(min(KEPT_SHARE * beyond, KEPT_MOST))

    def proof_runs(self, finalists: int) -> int:
        """Runs of the smallest proof of a number of finalists."""
        return self.reserve_blocks * (finalists + 1)


class BudgetTooSmall(WorkError):
    """The budget holds not even a part of what was requested."""


class BudgetSpent(WorkError):
    """No further launch may be started; the caller concludes with the runs that there are."""


@dataclass(frozen=True)
class Budget:
    """Bounds on the spending in ``history``; None for either means no bound.

    ``seconds`` are spent inside launches; ``runs`` counts every launch, also rejected ones. A cheap
    run, in ``cheap``, counts as its share of the time of a run of the default. Plans use
    :meth:`affords`, which is an estimate. An evaluator calls :meth:`require` before each launch, so
    that spending exceeds the bound by the current run at most.
    """

    history: RunHistory
    seconds: float | None = None
    runs: int | None = None
    cheap: RunHistory | None = None

    def renewal(self) -> Budget:
        """The same bounds, counted from the present content of the run history."""
        return Budget(
            self.history,
            None if self.seconds is None else self.seconds + self.spent_s,
            None if self.runs is None else self.runs + math.ceil(self.spent_runs),
            self.cheap,
        )

    @property
    def spent_s(self) -> float:
        """Machine seconds spent, inside launches of either form."""
        cheap_s = 0.0 if self.cheap is None else self.cheap.launched_s
        return self.history.launched_s + cheap_s

    @property
    def spent_runs(self) -> float:
        """Launches so far; those of the cheap form together count as much as they took."""
        full = float(len(self.history.entries))
        if self.cheap is None or not self.cheap.entries:
            return full
        run_s = self.cost_s(1)
        return full + (self.cheap.launched_s / run_s if run_s else len(self.cheap.entries))

    @property
    def holds(self) -> float:
        """Runs of about the default's length in the whole budget; infinite without a bound."""
        run_s = self.cost_s(1)
        by_time = self.seconds / run_s if self.seconds is not None and run_s else math.inf
        return min(by_time, math.inf if self.runs is None else self.runs)

    @property
    def left_s(self) -> float | None:
        """Machine seconds that are left, at least 0; None if they are not bounded."""
        return None if self.seconds is None else max(self.seconds - self.spent_s, 0.0)

    def require(self) -> None:
        """Raise BudgetSpent if no further launch may be started."""
        if self.left_s == 0 or (self.runs is not None and self.spent_runs >= self.runs):
            raise BudgetSpent("the budget is spent", code="budget.spent")

    def affords(self, runs: int, run_s: float | None = None) -> bool:
        """Whether the budget holds ``runs`` more runs.

        Each takes ``run_s`` seconds or, without it, about as long as the default.
        """
        cost = self.cost_s(runs) if run_s is None else run_s * runs
        return (self.seconds is None or self.spent_s + cost <= self.seconds) and (
            self.runs is None or self.spent_runs + runs <= self.runs
        )

    def cost_s(self, runs: int) -> float:
        """Machine seconds of ``runs`` runs of about the default's length."""
        walls = [record.wall_s for record in self.history.default_records()]
        return statistics.median(walls) * runs if walls else 0.0
