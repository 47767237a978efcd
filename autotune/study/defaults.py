"""The default's runs of a search: what every other run is compared with."""

from __future__ import annotations

import shlex

from autotune.errors import WorkError
from autotune.space import DEFAULT
from autotune.study.bench import Bench
from autotune.study.budget import Budget, BudgetSpent, BudgetTooSmall
from autotune.study.failure import failure_words
from autotune.study.ledger import DEFAULT_KEY, DEFAULT_PHASE, WARMUP, Entry
from autotune.study.plan import SearchPlan
from autotune.words import asked_time, count, seconds
from runner.types import RunRecord


class Defaults:
    """Makes the runs of the default that a search needs, when it needs them.

    The first of them tell how long a run takes: a budget that could never hold one setting and its
    proof ends the search there.  The very first may be long for other reasons (caches, compiling);
    the second gets its share of what is left, and not more.
    """

    def __init__(self, bench: Bench, plan: SearchPlan, budget: Budget) -> None:
        self.bench = bench
        self.plan = plan
        self.budget = budget
        self._warm = False

    def start(self, enough: int | None = None) -> None:
        """Warm up once per process; make sure that ``enough`` runs exist to compare with.

        ``enough`` is the plan's number where left out.  Raises WorkError where the default does
        not run, BudgetTooSmall where a search cannot be had for the budget.
        """
        wanted = self.plan.first_defaults if enough is None else enough
        missing = wanted - len(self.bench.ledger.default_values())
        if not self._warm:
            self._warm = True
            self.run(WARMUP)
            # One near the runs to come, however many were made before the study was interrupted.
            missing = max(missing, 1)
        for _ in range(missing):
            self.run(DEFAULT_PHASE)
            self._check_budget()

    def run_if_due(self) -> None:
        """Run the default again where the last of its runs lies too many runs back."""
        since = 0
        for entry in reversed(self.bench.ledger.entries):
            if entry.key == DEFAULT_KEY and entry.counts:
                break
            since += entry.counts
        if since >= self.plan.default_every:
            self.run(DEFAULT_PHASE)

    def run(self, phase: str) -> Entry:
        """One valid run of the default; raises WorkError where it fails twice in a row."""
        entry = self._launch(phase)
        if not (entry.record.valid or entry.censored):
            # Launchers fail to start now and then on a busy machine; a program that does not run
            # fails again.
            entry = self._launch(phase)
        if not entry.record.valid:
            raise WorkError(_default_fails(entry.record))
        return entry

    def _launch(self, phase: str) -> Entry:
        """One run; before any is known it may not take longer than a search could bear."""
        if self.bench.ledger.default_records():
            return self.bench.run(DEFAULT, phase)
        limit = self.budget.left_s
        if limit is not None and phase != WARMUP:
            limit /= self.plan.least_runs - 1
        try:
            entry = self.bench.run(DEFAULT, phase, timeout_s=limit)
        except BudgetSpent:
            entry = None
        if entry is None or (limit and entry.censored and entry.record.wall_s >= limit):
            raise BudgetTooSmall(self._too_small())
        return entry

    def _too_small(self) -> str:
        """What is known of a run where none of the default came to its end in time."""
        plan, entries = self.plan, self.bench.ledger.entries
        asked = asked_time(plan.budget_s or 0)
        needed = (
            f"A search needs at least {plan.least_runs} runs (warm-up, the default, one "
            "setting and its proof)"
        )
        first = [e.record.wall_s for e in entries if e.kind == WARMUP and e.record.valid]
        if not first:
            rejected = sum(entry.rejected for entry in entries)
            why = f" ({count(rejected, 'run')} rejected for foreign load)" if rejected else ""
            return (
                f"the budget of {asked} was spent before the default had run once{why}.\n"
                f"{needed}.\n{_REMEDY}"
            )
        return (
            f"a budget of {asked} cannot hold a search here: the first run took "
            f"{seconds(first[-1])}.\n{needed}: about {seconds(plan.least_runs * first[-1])} if all "
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
                f"{seconds(least)}.\n{_REMEDY}"
            )


_REMEDY = (
    "Give a larger --budget, or a smaller --input. Nothing is lost: the same "
    "command with a larger budget continues."
)


def _default_fails(record: RunRecord) -> str:
    return (
        f"the program does not run with the default setting: {record.state}: "
        f"{record.reason}.\nWithout the default nothing can be compared. The command "
        f"was:\n  {shlex.join(record.command)}{failure_words(record)}"
    )
