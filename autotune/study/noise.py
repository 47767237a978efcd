"""What gain can be resolved on this machine for this program, and in which time."""

from __future__ import annotations

import itertools
import statistics
from dataclasses import dataclass, replace
from typing import Any

from autotune.errors import WorkError
from autotune.space import DEFAULT, Space
from autotune.stats import (
    Estimate,
    Plan,
    Resolvable,
    detect_resolution,
    estimate,
    resolution_table,
)
from autotune.store import Store
from autotune.study.events import PhaseStarted, Watcher, silent
from autotune.study.identity import study_key
from autotune.study.ledger import WARMUP, Entry
from autotune.study.session import Session
from autotune.study.target import Target

NOISE = "noise"


@dataclass(frozen=True)
class NoiseReport:
    """``rows``: the smallest gain found with 80 % chance at each look, one finalist.

    ``spread`` is the relative scatter of neighbouring runs: what a comparison in blocks meets.
    """

    study: str
    runs: int
    rejected: int
    seconds: Estimate
    spread: float
    resolution: float | None
    run_wall_s: float
    rows: list[Resolvable]
    guard: bool = True

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": "autotune-noise-1",
            "study": self.study,
            "guard": self.guard,
            "runs": self.runs,
            "runs_rejected": self.rejected,
            "median_s": self.seconds.median,
            "spread": self.spread,
            "resolution_s": self.resolution,
            "run_wall_s": self.run_wall_s,
            "resolvable": [vars(row) for row in self.rows],
            "warnings": list(self.seconds.warnings),
        }


def measure_noise(
    target: Target,
    space: Space,
    store: Store,
    *,
    runs: int = 20,
    guard: bool = True,
    watch: Watcher = silent,
) -> NoiseReport:
    """Run the default ``runs`` times against itself; raises WorkError where it does not run."""
    key = study_key(target, space, Session.adapter(target), NOISE, {}, 0, guard)
    with Session(store, key, target, space, watch) as on:
        bench = on.bench
        before = bench.ledger.rejected
        bench.run(DEFAULT, WARMUP)
        watch(PhaseStarted(NOISE, "running the default against itself", runs))
        entries = [bench.run(DEFAULT, NOISE, position=i) for i in range(runs)]
        report = replace(
            _report(entries, on.study.hash[:12], bench.ledger.rejected - before), guard=guard
        )
        store.set_result(on.study.id, "measured", report.to_json())
    return report


def _report(entries: list[Entry], study: str, rejected: int) -> NoiseReport:
    failed = [e.record for e in entries if not e.record.valid]
    if failed:
        raise WorkError(f"the default does not run: {failed[0].state}: {failed[0].reason}")
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
        seconds=estimate(values, resolution=0.0 if clock else None),
        # For two independent runs the median step is 0.954 standard deviations of one.
        spread=statistics.median(steps) / 0.954,
        resolution=resolution,
        run_wall_s=statistics.median(walls),
        rows=resolution_table(
            ratios,
            statistics.median(walls),
            Plan(),
            coarseness=0.0 if resolution is None else resolution / middle,
        ),
    )
