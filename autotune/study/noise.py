"""Noise of a program on this machine: which gain can be resolved, and in which time."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from autotune.space import DEFAULT, Space
from autotune.stats import (
    Estimate,
    LookPlan,
    Resolvable,
    detect_resolution,
    estimate,
    resolution_table,
)
from autotune.store import Store
from autotune.store.keys import NOISE
from autotune.study.budget import Budget, BudgetSpent, BudgetTooSmall
from autotune.study.events import PhaseStarted, Watcher, silent
from autotune.study.request import FEWEST_RUNS
from autotune.study.run_history import WARMUP, HistoryEntry
from autotune.study.study import MEASURED, MeasuredStudy
from autotune.study.study_key import study_key
from autotune.targets.metric import default_failure
from autotune.targets.target import Target
from autotune.wording import Metric, asked_time, count


@dataclass(frozen=True)
class NoiseReport:
    """The noise of the default, and the gains that it allows to see.

    ``rows`` has the smallest gain found with 80 % chance at each look of one finalist. ``spread``
    is the relative scatter of neighbouring runs, which is the noise within blocks.
    """

    study: str
    runs: int
    rejected: int
    seconds: Estimate
    spread: float
    resolution: float | None
    run_wall_s: float
    rows: list[Resolvable]
    metric: Metric = field(default_factory=Metric)
    guard: bool = True

    def to_json(self) -> dict[str, Any]:
        """The published form (``autotune-noise-1``), in JSON types."""
        return {
            "schema": "autotune-noise-1",
            "study": self.study,
            "guard": self.guard,
            "runs": self.runs,
            "runs_rejected": self.rejected,
            "metric": self.metric.to_json(),
            "median_s": self.seconds.median,
            "spread": self.spread,
            "resolution_s": self.resolution,
            "run_wall_s": self.run_wall_s,
            "resolvable": [vars(row) for row in self.rows],
            "warnings": [note.to_json() for note in self.seconds.warnings],
        }


def measure_noise(
    target: Target,
    space: Space,
    store: Store,
    *,
    runs: int = 20,
    budget_s: float | None = None,
    guard: bool = True,
    watch: Watcher = silent,
) -> NoiseReport:
    """Run the default ``runs`` times against itself.

    There are fewer runs if ``budget_s`` machine seconds do not hold so many. Raises WorkError if
    the default does not run, BudgetTooSmall if the budget held fewer than :data:`FEWEST_RUNS` runs.
    """
    key = study_key(target, space, NOISE, {}, 0, guard)
    with MeasuredStudy(store, key, target, space, watch, budget_s=budget_s) as on:
        evaluator = on.evaluator
        before = evaluator.history.rejected
        budget = Budget(evaluator.history, budget_s).from_here()
        evaluator.budget = budget
        entries: list[HistoryEntry] = []
        try:
            if not evaluator.run(DEFAULT, WARMUP).record.valid:
                # Launchers sometimes fail to start. A program that does not run fails again.
                _require_valid([evaluator.run(DEFAULT, WARMUP)], ())
            watch(PhaseStarted(NOISE, "running the default against itself", runs))
            while len(entries) < runs and (not entries or budget.affords(1)):
                entries.append(evaluator.run(DEFAULT, NOISE, position=len(entries)))
        except BudgetSpent:
            pass  # The runs so far may be enough.
        if len(entries) < FEWEST_RUNS:
            held = count(len(entries), "run")
            raise BudgetTooSmall(
                f"the budget of {asked_time(budget_s or 0)} held {held} of the default; at "
                f"least {FEWEST_RUNS} are needed: give a larger --budget",
                code="budget.too_small",
            )
        _require_valid(entries, evaluator.history.files_written)
        report = _report(entries, on.study.hash[:12], evaluator.history.rejected - before)
        report = replace(report, guard=guard)
        store.set_result(on.study.id, MEASURED, report.to_json())
    return report


def _require_valid(entries: list[HistoryEntry], written: Sequence[str]) -> None:
    """Raise WorkError for the first failed run, with its output."""
    for record in (entry.record for entry in entries if not entry.record.valid):
        words = f"the default does not run: {record.state}: {record.reason}"
        raise default_failure(words, record, written)


def _report(entries: list[HistoryEntry], study: str, rejected: int) -> NoiseReport:
    values = [e.record.value_s for e in entries]
    walls = [e.record.wall_s for e in entries]
    middle = statistics.median(values)
    clock = entries[0].record.metric_s is None
    resolution = None if clock else detect_resolution(values)
    ratios = [value / middle for value in values]
    steps = [abs(b - a) for a, b in itertools.pairwise(ratios)]
    return NoiseReport(
        study=study,
        runs=len(entries),
        rejected=rejected,
        seconds=estimate(values, walls=walls, resolution=0.0 if clock else None),
        # For two independent runs the median step is 0.954 standard deviations of one run.
        spread=statistics.median(steps) / 0.954,
        resolution=resolution,
        run_wall_s=statistics.median(walls),
        metric=Metric.of(entries[-1].record),
        rows=resolution_table(
            ratios,
            statistics.median(walls),
            LookPlan(),
            coarseness=0.0 if resolution is None else resolution / middle,
        ),
    )
