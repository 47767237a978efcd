"""The bench of a study: what it measures with, and the runs of the default that it needs."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from autotune.measurement.budget import Budget, BudgetSpent, BudgetTooSmall, SearchPlan
from autotune.measurement.evaluator import Evaluator
from autotune.measurement.events import Watcher, silent
from autotune.measurement.run_history import (
    DEFAULT_KEY,
    DEFAULT_PHASE,
    WARMUP,
    HistoryEntry,
    RunHistory,
)
from autotune.space import DEFAULT
from autotune.targets.metric import default_failure
from autotune.wording import asked_time, count, seconds
from runner.types import RunRecord

ATTEMPTS = 5
"""Attempts at a run of a setting that has run before, until its failures count."""


@dataclass
class Bench:
    """What a study measures with: an evaluator within a plan and a budget, and who watches.

    It makes the runs of the default that a study needs, when it needs them. The first runs show how
    long a run takes. A budget that cannot hold one setting and its proof ends the search there. The
    very first run may be long for other reasons (caches, compilation), so the second run gets its
    share of the remaining budget and not more.
    """

    evaluator: Evaluator
    plan: SearchPlan
    budget: Budget
    watch: Watcher = silent
    warm: bool = False
    """Whether this process has warmed up already."""

    @property
    def history(self) -> RunHistory:
        """The runs of the study."""
        return self.evaluator.history

    @property
    def kept_runs(self) -> int:
        """Number of runs that the search and its race leave of the budget for what follows."""
        return self.plan.kept_runs(self.budget.holds)

    def limit_s(self, ratio: float = 1.0) -> float | None:
        """Wall seconds after which a run is stopped; None before the default was measured.

        ``ratio`` is that of the incumbent's time to the default's. A proof takes 1: slow launches
        of a candidate must be seen as those of the default are, however fast the best setting is.
        """
        return self.plan.run_limit_s(self.history.default_records(), ratio)

    def ensure_defaults(self, enough: int | None = None) -> None:
        """Warm up once per process, and make sure that ``enough`` runs of the default exist.

        ``enough`` is the plan's number if it is left out. Raises WorkError if the default does not
        run, BudgetTooSmall if the budget does not hold a search.
        """
        least_defaults = self.plan.first_defaults if enough is None else enough
        missing = least_defaults - len(self.history.default_values())
        if not self.warm:
            self.warm = True
            self.run_default(WARMUP)
            # At least one run near the coming runs, however many were made before an interruption.
            missing = max(missing, 1)
        for _ in range(missing):
            self.run_default(DEFAULT_PHASE)
            self._check_budget()

    def run_default_if_due(self) -> None:
        """Run the default again if its last run is too many runs ago."""
        since = 0
        for entry in reversed(self.history.entries):
            if entry.key == DEFAULT_KEY and entry.counts:
                break
            since += entry.counts
        if since >= self.plan.default_every:
            self.run_default(DEFAULT_PHASE)

    def run_default(self, phase: str) -> HistoryEntry:
        """Make one valid run of the default.

        Raises WorkError if it fails twice in a row, or five times if it has run before.
        """
        # Launchers sometimes fail to start on a busy machine. A program that does not run fails
        # again; one that fails now and then has run before.
        attempts = ATTEMPTS if self.history.default_records() else 2
        for _ in range(attempts):
            entry = self._launch_default(phase)
            if entry.record.valid or entry.censored:
                break
        if not entry.record.valid:
            files = self.history.written_files
            raise default_failure(_default_fails(entry.record), entry.record, files)
        return entry

    def _launch_default(self, phase: str) -> HistoryEntry:
        """Make one run; the first may not take longer than a search could allow."""
        if self.history.default_records():
            return self.evaluator.run(DEFAULT, phase)
        limit = self.budget.left_s
        if limit is not None and phase != WARMUP:
            limit /= self.plan.least_runs - 1
        try:
            entry = self.evaluator.run(DEFAULT, phase, timeout_s=limit)
        except BudgetSpent:
            entry = None
        if entry is None or (limit and entry.censored and entry.record.wall_s >= limit):
            raise BudgetTooSmall(self._too_small(), code="budget.too_small")
        return entry

    def _too_small(self) -> str:
        """The message if no run of the default ended in time, with what is known of its length."""
        plan, entries = self.plan, self.history.entries
        budget = asked_time(plan.budget_s or 0)
        requirement = (
            f"A search needs at least {plan.least_runs} runs (warm-up, the default, one "
            "setting and its proof)"
        )
        first = [e.record.wall_s for e in entries if e.kind == WARMUP and e.record.valid]
        if not first:
            rejections = sum(entry.rejected for entry in entries)
            why = f" ({count(rejections, 'run')} rejected for foreign load)" if rejections else ""
            return (
                f"the budget of {budget} was spent before the default had run once{why}.\n"
                f"{requirement}.\n{_REMEDY}"
            )
        return (
            f"a budget of {budget} cannot hold a search here: the first run took "
            f"{seconds(first[-1])}.\n{requirement}: about "
            f"{seconds(plan.least_runs * first[-1])} if all "
            f"take as long.\n{_REMEDY}"
        )

    def _check_budget(self) -> None:
        least = self.budget.cost_s(self.plan.least_runs)
        if self.plan.budget_s is not None and self.plan.budget_s < least:
            run_s = self.budget.cost_s(1)
            raise BudgetTooSmall(
                f"a budget of {asked_time(self.plan.budget_s)} cannot hold a search here: one "
                f"run takes about {seconds(run_s)}, and at least {self.plan.least_runs} are "
                "needed (warm-up, the default, one setting and its proof): about "
                f"{seconds(least)}.\n{_REMEDY}",
                code="budget.too_small",
            )


_REMEDY = (
    "Give a larger --budget, or a smaller --input. Nothing is lost: the same "
    "command with a larger budget continues."
)


def _default_fails(record: RunRecord) -> str:
    return (
        f"the program does not run with the default setting: {record.state}: "
        f"{record.reason}.\nWithout the default nothing can be compared. The command "
        f"was:\n  {shlex.join(record.command)}"
    )
