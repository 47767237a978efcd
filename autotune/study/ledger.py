"""The runs of one study in order, and the figures that are read off them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field

from runner.types import GUARD_STATES, RunRecord

DEFAULT_KEY = "default"
WARMUP = "warmup"
SEARCH = "search"
DEFAULT_PHASE = "default"
CONFIRM = "confirm"
NEIGHBOURS = 3
"""How many default runs around a run, in order, its ratio is taken against."""


@dataclass(frozen=True)
class Entry:
    """One run in its place.  ``phase`` may carry a round behind a colon, such as ``confirm:60``."""

    order: int
    key: str
    phase: str
    record: RunRecord
    trial: int | None = None
    block: int = 0
    position: int = 0

    @property
    def kind(self) -> str:
        return self.phase.partition(":")[0]

    @property
    def counts(self) -> bool:
        """Whether it says something about its setting: not rejected, not warming up."""
        return self.record.state not in GUARD_STATES and self.kind != WARMUP

    @property
    def censored(self) -> bool:
        return self.record.state == "timeout"


@dataclass
class Ledger:
    """Appended to in order; everything else is derived."""

    entries: list[Entry] = field(default_factory=list)
    _defaults: list[tuple[int, RunRecord]] = field(default_factory=list, repr=False)
    _blocks: dict[str, dict[int, dict[str, Entry]]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Ledger:
        ledger = cls()
        for entry in entries:
            ledger.add(entry)
        return ledger

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        if not entry.counts:
            return
        if entry.key == DEFAULT_KEY and entry.record.valid:
            self._defaults.append((entry.order, entry.record))
        self._blocks.setdefault(entry.phase, {}).setdefault(entry.block, {})[entry.key] = entry

    @property
    def next_order(self) -> int:
        return self.entries[-1].order + 1 if self.entries else 0

    def blocks(self, phase: str) -> dict[int, dict[str, Entry]]:
        """``{block: {setting key: entry}}`` of one phase; the last run of a setting in a block."""
        return self._blocks.get(phase, {})

    def default_values(self) -> list[float]:
        """Seconds of every default run that counts, in order."""
        return [record.value_s for _, record in self._defaults]

    def default_records(self) -> list[RunRecord]:
        return [record for _, record in self._defaults]

    def defaults_near(self, order: int) -> list[RunRecord]:
        """The default runs nearest to a place in the order: drift is local."""
        nearest = sorted(self._defaults, key=lambda item: abs(item[0] - order))[:NEIGHBOURS]
        return [record for _, record in nearest]

    def ratio(self, entry: Entry) -> float | None:
        """T / T_default of one run against its neighbouring default runs; None where it has none.

        A censored run gives the lower bound that its time limit proves: the limit less what the
        default spends outside its own figure.
        """
        near = self.defaults_near(entry.order)
        if not near:
            return None
        default = statistics.median(record.value_s for record in near)
        if entry.record.valid:
            return entry.record.value_s / default
        if entry.censored:
            outside = statistics.median(record.wall_s - record.value_s for record in near)
            return max(entry.record.wall_s - outside, 0.0) / default
        return None

    def count(self, *kinds: str) -> int:
        """Runs of these kinds, rejected ones included: what the machine was used for."""
        return sum(entry.kind in kinds for entry in self.entries)

    @property
    def confirmation_runs(self) -> int:
        return self.count(CONFIRM)

    @property
    def search_runs(self) -> int:
        return len(self.entries) - self.confirmation_runs

    @property
    def rejected(self) -> int:
        return sum(entry.record.state == "foreign_load" for entry in self.entries)

    @property
    def launched_s(self) -> float:
        """Wall seconds spent inside launches."""
        return sum(entry.record.wall_s for entry in self.entries)
