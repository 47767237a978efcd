"""Run history: the runs of one study in order, and the figures derived from them."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from autotune.measurement.figure_time import covered_s, least_ratio
from autotune.stats import DefaultLevel, slow_from
from autotune.stats.blocks import NEAREST
from autotune.store import Store, StoredRun
from autotune.store.model import kind_of
from autotune.store.row_checks import pause_collection
from autotune.wording import Metric
from runner.types import GUARD_STATES, RunRecord

DEFAULT_KEY = "default"
WARMUP = "warmup"
SEARCH = "search"
DEFAULT_PHASE = "default"
CONFIRM = "confirm"
RACE = "race"
SEARCH_KINDS = (WARMUP, SEARCH, DEFAULT_PHASE, RACE)
"""Phases whose runs are not part of interleaved blocks."""
Figure = Callable[[RunRecord], float]
"""A function that returns a figure of a valid run, in any unit; less is better."""
LEAD = "lead"
"""Last part of the name of a phase whose runs are leads; their times are not used."""
FIRST_RUN = "first-run:"
"""Begins the names of a study's documents about first runs."""
_KEPT_PATHS = 100
"""Number of paths of a first run that are stored."""
REJECTION_PREFIX = "rejected for foreign load every time"
"""Prefix of the reason for a setting that is always disturbed while the default is not."""


def is_timed(phase: str) -> bool:
    """Whether the times of the runs of a phase are used: they are no warm-ups and no leads."""
    return kind_of(phase) != WARMUP and not phase.endswith(f":{LEAD}")


@dataclass(frozen=True)
class HistoryEntry:
    """One run and its place; ``phase`` may have a round after a colon, such as ``confirm:60``."""

    order: int
    key: str
    phase: str
    record: RunRecord
    trial: int | None = None
    block: int = 0
    position: int = 0

    @property
    def kind(self) -> str:
        """The phase without its round."""
        return kind_of(self.phase)

    @property
    def wall_s(self) -> float:
        """Wall seconds of the launch."""
        return self.record.wall_s

    @property
    def counts(self) -> bool:
        """Whether the run counts for its setting: it was not rejected and is no warm-up."""
        return self.record.state not in GUARD_STATES and self.kind != WARMUP

    @property
    def has_time(self) -> bool:
        """Whether the run counts and its time is used: it is no lead."""
        return self.counts and is_timed(self.phase)

    @property
    def censored(self) -> bool:
        """Whether the run was stopped at a limit."""
        return self.record.state == "timeout"

    @property
    def rejected(self) -> bool:
        """Whether the guard rejected the run, or the setting because all of its runs are."""
        return self.record.state == "foreign_load" or self.record.reason.startswith(
            REJECTION_PREFIX
        )


def entry_of(run: StoredRun) -> HistoryEntry:
    """A stored run as an entry of the run history."""
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


@dataclass(frozen=True)
class FirstRun:
    """The first run of one process in a study.

    ``order`` is its place among the runs. ``created`` and ``changed`` are the files that it wrote;
    ``cut``: not all folders were looked at; ``seconds``: what the looks took. ``prepared``: the
    user has files removed or copied before each run.
    """

    order: int
    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    cut: bool = False
    seconds: float = 0.0
    prepared: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it wrote."""
        return (*self.created, *self.changed)

    def to_json(self) -> dict[str, Any]:
        paths = {
            "created": list(self.created[:_KEPT_PATHS]),
            "changed": list(self.changed[:_KEPT_PATHS]),
        }
        return {**asdict(self), **paths}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FirstRun:
        """Inverse of :meth:`to_json`; raises LookupError, TypeError or ValueError for damage."""
        lists = [tuple(str(path) for path in data[name]) for name in ("created", "changed")]
        cut, preparation = bool(data["cut"]), bool(data["prepared"])
        return cls(int(data["order"]), lists[0], lists[1], cut, float(data["seconds"]), preparation)


def first_runs_of(documents: Iterable[Mapping[str, Any]]) -> Iterator[FirstRun]:
    """The first runs that a study's documents describe; damaged ones are left out."""
    for data in documents:
        try:
            yield FirstRun.from_json(data)
        except (LookupError, TypeError, ValueError):
            continue


@dataclass
class _Defaults:
    """The default's runs on one place, with their positions in the order."""

    records: list[RunRecord] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)


@dataclass
class RunHistory:
    """The runs of one study; entries are appended in order, and everything else is derived.

    Runs of different places (node sets of several workers) are never compared: a ratio is relative
    to the default on the same place. ``place`` is that of this process; None if the history is only
    read.
    """

    entries: list[HistoryEntry] = field(default_factory=list)
    place: str | None = None
    first_runs: list[FirstRun] = field(default_factory=list)
    """The first run of each process, with the files that it wrote; empty for simulated studies."""
    previous: str | None = None
    """Key of the setting that this process launched last; None before its first launch."""
    _defaults: dict[str, _Defaults] = field(default_factory=dict, repr=False)
    _blocks: dict[str, dict[int, dict[str, HistoryEntry]]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, entries: Iterable[HistoryEntry], place: str | None = None) -> RunHistory:
        """A run history of these entries, in order."""
        history = cls(place=place)
        with pause_collection():
            for entry in entries:
                history.add(entry)
        return history

    def add(self, entry: HistoryEntry) -> None:
        """Append a run."""
        self.entries.append(entry)
        if not entry.counts:
            return
        if entry.key == DEFAULT_KEY and entry.record.valid and entry.has_time:
            defaults = self._defaults.setdefault(entry.record.place, _Defaults())
            defaults.records.append(entry.record)
            defaults.orders.append(entry.order)
        block = self._blocks.setdefault(entry.phase, {}).setdefault(entry.block, {})
        # All runs of a block are of one place, so one of them shows it; the search is one large
        # block.
        other = next(iter(block.values()), None)
        if other is not None and other.record.place != entry.record.place:
            block.clear()  # The block began on another place, and a block is measured on one place.
        block[entry.key] = entry

    @property
    def written_files(self) -> tuple[str, ...]:
        """The files that the first runs created."""
        return tuple(dict.fromkeys(path for first in self.first_runs for path in first.created))

    @property
    def next_order(self) -> int:
        """The position of the next run."""
        return self.entries[-1].order + 1 if self.entries else 0

    def blocks(self, phase: str) -> dict[int, dict[str, HistoryEntry]]:
        """Blocks of one phase, ``{block: {setting key: entry}}``, with each setting's last run."""
        return self._blocks.get(phase, {})

    @property
    def phases(self) -> list[str]:
        """Names of all phases with runs that count."""
        return list(self._blocks)

    @property
    def slow_from(self) -> float:
        """The multiple of the default's time from which a launch is slow."""
        return slow_from(math.sqrt(self.default_scatter()[0]))

    def default_values(self) -> list[float]:
        """Seconds of every default run that counts, in order; of this place if there is one."""
        return [record.value_s for record in self.default_records()]

    def default_records(self) -> list[RunRecord]:
        """The runs behind :meth:`default_values`."""
        if self.place is None:
            every = [defaults.records for defaults in self._defaults.values()]
            return every[0] if len(every) == 1 else [r for records in every for r in records]
        return self._defaults.get(self.place, _Defaults()).records

    def defaults_on(self, place: str) -> int:
        """Number of the default's runs on a place that count."""
        return len(self._defaults.get(place, _Defaults()).records)

    def default_scatter(self) -> tuple[float, int]:
        """Variance of one log time of the default, and its degrees of freedom.

        It comes from neighbours in the order, so that a machine that becomes slower does not count
        as noise.
        """
        logs = [math.log(value) for value in self.default_values()]
        steps = [after - before for before, after in pairwise(logs)]
        return sum(step * step for step in steps) / 2 / max(len(steps), 1), len(steps)

    def ratio(self, entry: HistoryEntry, figure: Figure | None = None) -> float | None:
        """T / T_default of one run against the default runs around it; None if it has no figure.

        A censored run gives the lower bound that its time limit proves: the limit minus the
        default's time outside its own figure. ``figure``: another figure than the run's own;
        nothing is known of it for a censored run, nor of the figure of an own objective.
        """
        value = figure or _own_figure
        defaults = self._defaults.get(entry.record.place)
        has_figure = entry.record.valid or (entry.censored and figure is None)
        if not has_figure or defaults is None:
            return None
        first = bisect_left(defaults.orders, entry.order)
        around = slice(max(first - NEAREST, 0), first + NEAREST + 1)
        near = defaults.records[around]
        if near == [entry.record]:
            return 1.0
        of_run = value if entry.record.valid else covered_s
        level = DefaultLevel(defaults.orders[around], [of_run(r) for r in near]).at(entry.order)
        if entry.record.valid:
            return value(entry.record) / level
        return least_ratio(entry.record, near, level)

    def rejections(self, *phases: str) -> dict[str, tuple[int, int]]:
        """Rejections by setting, ``{setting key: (counts, runs)}``, of some phases or of all.

        The warm-up is left out. ``runs`` counts every attempt, also rejected ones.
        """
        entries = [
            e for e in self.entries if e.kind != WARMUP and (not phases or e.phase in phases)
        ]
        runs = Counter(e.key for e in entries)
        counts = Counter(e.key for e in entries if e.rejected)
        return {key: (counts[key], count) for key, count in runs.items()}

    @property
    def metric(self) -> Metric:
        """What the figures of these runs are."""
        return Metric.of(next((e.record for e in reversed(self.entries) if e.record.valid), None))

    def count(self, *kinds: str) -> int:
        """Number of runs of these kinds, also rejected ones, since these use the machine too."""
        return sum(entry.kind in kinds for entry in self.entries)

    @property
    def confirmation_runs(self) -> int:
        """Number of launches of the proof and of the measurements after it."""
        return self.count(CONFIRM)

    @property
    def search_runs(self) -> int:
        """Number of all other launches: the search with the default, rejected and stopped runs."""
        return len(self.entries) - self.confirmation_runs

    @property
    def rejected(self) -> int:
        """Number of runs that the guard rejected."""
        return sum(entry.rejected for entry in self.entries)

    @property
    def launched_s(self) -> float:
        """Wall seconds spent inside launches."""
        return sum(entry.record.wall_s for entry in self.entries)


def history_of(
    store: Store,
    study_id: int,
    place: str | None = None,
    brief: bool = True,
) -> RunHistory:
    """All runs of a stored study, as seen from a place, without the last lines of their output.

    ``brief``: only what their speed and their outcome need. A study that goes on also learns from
    their read-back, their further figures and their printed lines.
    """
    runs = store.runs(study_id, brief=brief, output=False)
    history = RunHistory.of(map(entry_of, runs), place)
    first = first_runs_of(store.documents(study_id, FIRST_RUN).values())
    history.first_runs = sorted(first, key=lambda run: run.order)
    return history
