"""Noise of a program on this machine: which gain can be resolved, and in which time."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from autotune.document import Document, Omitted
from autotune.json_types import Number
from autotune.measurement.budget import Budget, BudgetSpent, BudgetTooSmall
from autotune.measurement.events import PhaseStarted, Watcher, silent
from autotune.measurement.measured_study import WITHOUT_RESULT, MeasuredStudy
from autotune.measurement.run_history import WARMUP, HistoryEntry
from autotune.measurement.study_key import study_key
from autotune.notes import Note
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
from autotune.study.study_request import FEWEST_RUNS
from autotune.targets.metric import default_failure
from autotune.targets.rows import MpiChoiceRow
from autotune.targets.target import Target
from autotune.wording import Metric, asked_time, count

TRIES = 3
"""Failed runs after which no more are made."""


class NoiseReport(Document):
    """The noise of the default, and the gains that it allows to see."""

    schema_: Literal["autotune-noise-1"] = Field(default="autotune-noise-1", alias="schema")
    study: str
    guard: bool
    runs: int
    rejected: int = Field(alias="runs_rejected")
    metric: Metric
    """What the figures are; the time of a rate is 1/rate, without the prefix of its unit."""
    median_s: Number
    spread: Number
    """Relative difference of neighbouring runs: the noise within blocks."""
    resolution: Number | None = Field(alias="resolution_s")
    """Resolution of the measured figure."""
    run_wall_s: Number
    rows: list[Resolvable] = Field(alias="resolvable")
    """Smallest gain found with 80 % chance at each look of one finalist, by number of pairs."""
    warnings: tuple[Note, ...]
    mpi_choice: Omitted[MpiChoiceRow] = None
    """Why this MPI library was taken."""
    seconds: Estimate = Field(exclude=True)
    """The figure of a run, with its interval."""


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

    There are fewer runs if ``budget_s`` machine seconds do not hold them. Raises WorkError if
    the default does not run, BudgetTooSmall if the budget held fewer than :data:`FEWEST_RUNS` runs.
    """
    key = study_key(target, space, NOISE, {}, 0, guard)
    with MeasuredStudy(store, key, target, space, watch, budget_s=budget_s) as on:
        evaluator = on.evaluator
        before = evaluator.history.rejected
        budget = Budget(evaluator.history, budget_s).renewal()
        evaluator.budget = budget
        entries: list[HistoryEntry] = []
        try:
            if not evaluator.run(DEFAULT, WARMUP).record.valid:
                # Launchers sometimes fail to start. A program that does not run fails again.
                _require_valid([evaluator.run(DEFAULT, WARMUP)], ())
            watch(PhaseStarted(NOISE, "running the default against itself", runs))
            while len(entries) < runs and (not entries or budget.affords(1)):
                entries.append(evaluator.run(DEFAULT, NOISE, position=len(entries)))
                if sum(not entry.record.valid for entry in entries) == TRIES:
                    break  # The report needs runs that are all valid.
        except BudgetSpent:
            pass  # The runs so far may be enough.
        _require_valid(entries, evaluator.history.written_files)
        if len(entries) < FEWEST_RUNS:
            run_count = count(len(entries), "run")
            raise BudgetTooSmall(
                f"the budget of {asked_time(budget_s or 0)} held {run_count} of the default; at "
                f"least {FEWEST_RUNS} are needed: give a larger --budget",
                code="budget.too_small",
            )
        rejections = evaluator.history.rejected - before
        report = _report(entries, on.study.hash[:12], rejections, guard)
        store.set_result(on.study.id, WITHOUT_RESULT, report.to_json())
    return report


def _require_valid(entries: list[HistoryEntry], files: Sequence[str]) -> None:
    """Raise WorkError for the first failed run, with its output."""
    for record in (entry.record for entry in entries if not entry.record.valid):
        words = f"the default does not run: {record.state}: {record.reason}"
        raise default_failure(words, record, files)


def _report(entries: list[HistoryEntry], study: str, rejections: int, guard: bool) -> NoiseReport:
    values = [e.record.value_s for e in entries]
    walls = [e.record.wall_s for e in entries]
    middle = statistics.median(values)
    clock = entries[0].record.metric_s is None
    resolution = None if clock else detect_resolution(values)
    ratios = [value / middle for value in values]
    steps = [abs(b - a) for a, b in itertools.pairwise(ratios)]
    seconds = estimate(values, walls=walls, resolution=0.0 if clock else None)
    return NoiseReport(
        study=study,
        guard=guard,
        runs=len(entries),
        runs_rejected=rejections,
        median_s=seconds.median,
        seconds=seconds,
        warnings=seconds.warnings,
        # For two independent runs the median step is 0.954 standard deviations of one run.
        spread=statistics.median(steps) / 0.954,
        resolution_s=resolution,
        run_wall_s=statistics.median(walls),
        metric=Metric.of(entries[-1].record),
        resolvable=resolution_table(
            ratios,
            statistics.median(walls),
            LookPlan(),
            coarseness=0.0 if resolution is None else resolution / middle,
        ),
    )
