"""Simulation: an evaluator without a machine, whose run times come from a function.

Tests, replay and simulations use it. Everything that decides is the real code, and only launching
is replaced. So the false winners and the runs spent that are measured with it are properties of the
study itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autotune.measurement.budget import Budget
from autotune.measurement.run_history import WARMUP, HistoryEntry, RunHistory
from autotune.space import Setting
from autotune.store.keys import OPERATIONS
from autotune.strategies import Proposal
from autotune.study.trial_store import Trial
from runner.types import ReadBack, RunRecord

Model = Callable[[Setting, np.random.Generator], float | str]
"""Seconds of one run, or the state ("failed", "unverified", ...) in which it ends."""

OUTSIDE_S = 0.2
"""Wall seconds of a run outside the program's own figure."""


@dataclass
class SimulatedEvaluator:
    """Draws each run from ``model``; ``inactive`` parameters read back as not opened."""

    model: Model
    rng: np.random.Generator
    history: RunHistory = field(default_factory=RunHistory)
    inactive: frozenset[str] = frozenset()
    budget: Budget | None = None

    def run(
        self,
        setting: Setting,
        phase: str,
        *,
        trial: int | None = None,
        block: int = 0,
        position: int = 0,
        timeout_s: float | None = None,
    ) -> HistoryEntry:
        if self.budget is not None:
            self.budget.require()
        record = self._record(setting, timeout_s)
        if phase == WARMUP:  # A simulated program has no operations of its own.
            record.extra = {**record.extra, OPERATIONS: "commute"}
        entry = HistoryEntry(
            self.history.next_order, setting.key, phase, record, trial, block, position
        )
        self.history.add(entry)
        self.history.previous = entry.key
        return entry

    def _record(self, setting: Setting, timeout_s: float | None) -> RunRecord:
        outcome = self.model(setting, self.rng)
        if isinstance(outcome, str):
            return RunRecord(state=outcome, reason=outcome, wall_s=OUTSIDE_S)  # type: ignore[arg-type]
        wall = outcome + OUTSIDE_S
        if timeout_s is not None and wall > timeout_s:
            return RunRecord(state="timeout", reason="time limit", wall_s=timeout_s)
        read_back = {
            name: ReadBack("inactive" if name in self.inactive else "in force", str(value))
            for name, value in setting.items()
        }
        return RunRecord(state="ok", wall_s=wall, metric_s=outcome, read_back=read_back)


@dataclass
class MemoryTrialStore:
    """Trials without a database; ``ratios`` are those that "earlier studies" measured."""

    trials: list[Trial] = field(default_factory=list)
    ratios: dict[Setting, float] = field(default_factory=dict)
    plans: dict[str, str] = field(default_factory=dict)
    shared: bool = False

    def open(
        self, setting: Setting, attrs: dict[str, object], spares: Sequence[Proposal] = ()
    ) -> Trial:
        trial = Trial(len(self.trials), setting, setting, attrs=dict(attrs))
        self.trials.append(trial)
        return trial

    @property
    def busy(self) -> bool:
        """False: there is no other worker."""
        return False

    def refresh(self) -> bool:
        """False: there is no other worker."""
        return False

    def close(self, trial: Trial) -> None:
        """Do nothing: the trial is in memory already."""

    def known_ratio(self, setting: Setting) -> float | None:
        return self.ratios.get(setting)

    def store_document(self, name: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Store a document as the database does: through JSON, and the first document stays."""
        self.plans.setdefault(name, json.dumps(document))
        return dict(json.loads(self.plans[name]))

    def stored_document(self, name: str) -> dict[str, Any] | None:
        """The document of this name; None if there is none."""
        return json.loads(self.plans[name]) if name in self.plans else None
