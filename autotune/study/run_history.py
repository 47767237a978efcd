"""The runs of one study in order, and the figures that are read off them."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from autotune.stats import SLOW, DefaultLevel
from autotune.stats.blocks import NEAREST
from autotune.store import StoredRun
from runner.types import GUARD_STATES, RunRecord

DEFAULT_KEY = "default"
WARMUP = "warmup"
SEARCH = "search"
DEFAULT_PHASE = "default"
CONFIRM = "confirm"
RACE = "race"
SEARCH_KINDS = (WARMUP, SEARCH, DEFAULT_PHASE, RACE)
"""Runs that are not part of interleaved blocks."""
Figure = Callable[[RunRecord], float]
"""One of several figures of a valid run, in a unit of its own; less is better."""
ALWAYS_REJECTED = "rejected for foreign load every time"
"""How the reason of a setting begins that only ever runs disturbed, where the default does not."""


@dataclass(frozen=True)
class HistoryEntry:
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

    @property
    def rejected(self) -> bool:
        """Whether the guard rejected it, or gave its setting up for being rejected always."""
        return self.record.state == "foreign_load" or self.record.reason.startswith(ALWAYS_REJECTED)


def entry_of(run: StoredRun) -> HistoryEntry:
    """A stored run in the run history's form."""
    return HistoryEntry(
        run.order,
        run.setting_key,
        run.phase,
        run.record,
        run.trial,
        run.block or 0,
        run.position or 0,
    )


def _own_figure(record: RunRecord) -> float:
    return record.value_s


@dataclass
class _Defaults:
    """The default's runs on one place, and where they stand in the order."""

    records: list[RunRecord] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)


@dataclass
class RunHistory:
    """Appended to in order; everything else is derived.

    Runs of different places (node sets of several workers) are never compared: a ratio is that to
    the default on the same place.  ``place`` is this process's own; None: only looked at.
    """

    entries: list[HistoryEntry] = field(default_factory=list)
    place: str | None = None
    _defaults: dict[str, _Defaults] = field(default_factory=dict, repr=False)
    _blocks: dict[str, dict[int, dict[str, HistoryEntry]]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, entries: Iterable[HistoryEntry], place: str | None = None) -> RunHistory:
        history = cls(place=place)
        for entry in entries:
            history.add(entry)
        return history

    def add(self, entry: HistoryEntry) -> None:
        self.entries.append(entry)
        if not entry.counts:
            return
        if entry.key == DEFAULT_KEY and entry.record.valid:
            known = self._defaults.setdefault(entry.record.place, _Defaults())
            known.records.append(entry.record)
            known.orders.append(entry.order)
        block = self._blocks.setdefault(entry.phase, {}).setdefault(entry.block, {})
        # All of a block are of one place, so one of them tells; the search is one large block.
        other = next(iter(block.values()), None)
        if other is not None and other.record.place != entry.record.place:
            block.clear()  # Begun elsewhere: a block is measured on one place.
        block[entry.key] = entry

    @property
    def next_order(self) -> int:
        return self.entries[-1].order + 1 if self.entries else 0

    def blocks(self, phase: str) -> dict[int, dict[str, HistoryEntry]]:
        """``{block: {setting key: entry}}`` of one phase; the last run of a setting in a block."""
        return self._blocks.get(phase, {})

    @property
    def phases(self) -> list[str]:
        """Names of all phases with runs that count."""
        return list(self._blocks)

    def is_slow(self, entry: HistoryEntry) -> bool | None:
        """Whether a run took more than twice what the default took around it; None where it has no
        figure."""
        ratio = self.ratio(entry)
        return None if ratio is None else ratio > SLOW

    def default_values(self) -> list[float]:
        """Seconds of every default run that counts, in order; of this place where there is one."""
        return [record.value_s for record in self.default_records()]

    def default_records(self) -> list[RunRecord]:
        """The runs behind :meth:`default_values`."""
        if self.place is None:
            every = [known.records for known in self._defaults.values()]
            return every[0] if len(every) == 1 else [r for records in every for r in records]
        return self._defaults.get(self.place, _Defaults()).records

    def defaults_on(self, place: str) -> int:
        """How many runs of the default count on a place."""
        return len(self._defaults.get(place, _Defaults()).records)

    def default_scatter(self) -> tuple[float, int]:
        """Variance of one log time of the default, and its degrees of freedom.

        From neighbours in the order, so that a machine that gets slower is not noise.
        """
        logs = [math.log(value) for value in self.default_values()]
        steps = [after - before for before, after in pairwise(logs)]
        return sum(step * step for step in steps) / 2 / max(len(steps), 1), len(steps)

    def ratio(self, entry: HistoryEntry, figure: Figure | None = None) -> float | None:
        """T / T_default of one run against the default runs around it; None where it has none.

        A censored run gives the lower bound that its time limit proves: the limit less what the
        default spends outside its own figure.  ``figure``: of another than the run's own; of a
        censored run nothing is known then.
        """
        value = figure or _own_figure
        known = self._defaults.get(entry.record.place)
        known_at_all = entry.record.valid or (entry.censored and figure is None)
        if not known_at_all or known is None:
            return None
        first = bisect_left(known.orders, entry.order)
        around = slice(max(first - NEAREST, 0), first + NEAREST + 1)
        near = known.records[around]
        if near == [entry.record]:
            return 1.0
        level = DefaultLevel(known.orders[around], [value(r) for r in near]).at(entry.order)
        if entry.record.valid:
            return value(entry.record) / level
        outside = statistics.median(record.wall_s - record.value_s for record in near)
        return max(entry.record.wall_s - outside, 0.0) / level

    def rejections(self, *phases: str) -> dict[str, tuple[int, int]]:
        """``{setting key: (rejected, runs)}`` of some phases or all, warming up left out.

        ``runs`` counts every attempt, the rejected ones included.
        """
        asked = [e for e in self.entries if e.kind != WARMUP and (not phases or e.phase in phases)]
        runs = Counter(e.key for e in asked)
        rejected = Counter(e.key for e in asked if e.rejected)
        return {key: (rejected[key], count) for key, count in runs.items()}

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
        return sum(entry.rejected for entry in self.entries)

    @property
    def launched_s(self) -> float:
        """Wall seconds spent inside launches."""
        return sum(entry.record.wall_s for entry in self.entries)
