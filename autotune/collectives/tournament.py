"""The tournament: finds the fastest algorithm at each size in three rounds, with few measurements.

:func:`table_candidates` lists the candidates; :func:`as_rules` writes a table's entries as rules.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from autotune.collective_rules import Rule
from autotune.dialects.base import LIBRARY_DECIDES, RuleDialect
from autotune.space import DEFAULT, Setting, Space

Jobs = Mapping[Setting, Sequence[int]]
Ratios = Mapping[Setting, Mapping[int, float]]
"""T / T_default of each setting by size; a size that is missing has failed."""
Measure = Callable[[Jobs], Ratios]
"""Runs each setting at its sizes, once, with the default among them."""
Rounds = Generator[Jobs, Ratios, None]

COARSE = 3
"""The first round measures every third size."""
SURVIVES = 1.25
"""A candidate stays at a size if its time is within this factor of the best one's there ..."""
CLOSE = 1.1
"""... and within this factor of the default's."""
MOST = 4
FINAL = 3
SHARE = 0.3
"""Largest share of a full grid's measurements. It may be exceeded with one candidate or few sizes,
if the first round and one measurement of each size's best need more."""
SECOND = 0.6
"""Share of the remaining measurements for the second round; the last round has the rest."""
CHANGE = 0.03
"""Cost of a further entry in the table, as a log ratio of the time at one size."""


Wish = tuple[int, float, Setting, int]
"""Rank of a candidate at a size, its ratio there, the candidate, and a size to measure it at."""


def first(wishes: Sequence[Wish], most: int) -> dict[Setting, list[int]]:
    """The first ``most`` measurements by rank, each once: all sizes' best before a second best."""
    ranking = sorted(wishes, key=lambda wish: (*wish[:2], wish[2].key, wish[3]))
    measurements = list(dict.fromkeys((candidate, size) for _, _, candidate, size in ranking))
    jobs: dict[Setting, list[int]] = {}
    for candidate, size in measurements[: max(most, 0)]:
        jobs.setdefault(candidate, []).append(size)
    return {candidate: sorted(sizes) for candidate, sizes in jobs.items()}


@dataclass
class Tournament:
    """The tournament of the candidates: ``run`` measures, then ``table`` gives the entries.

    ``points`` counts measurements of a candidate at a size, without the default; ``grid`` is the
    count of a full grid with three runs of each.  ``leaves_sizes``: the table may leave sizes to
    the library.
    """

    candidates: Sequence[Setting]
    sizes: Sequence[int]
    measure: Measure
    min_gain: float = 0.05
    leaves_sizes: bool = True
    points: int = 0
    ratios_by_setting: dict[Setting, dict[int, list[float]]] = field(default_factory=dict)

    @property
    def grid(self) -> int:
        return 3 * len(self.candidates) * len(self.sizes)

    def run(self) -> None:
        """Run the :meth:`rounds` with ``measure``."""
        rounds = self.rounds()
        jobs = next(rounds, None)
        while jobs is not None:
            try:
                jobs = rounds.send(self.measure(jobs))
            except StopIteration:
                return

    def rounds(self) -> Rounds:
        """Three rounds: all candidates at a few sizes; the best of these at the sizes near those
        where they were fast; the best of each size once more.  In the second and third round the
        better candidates come first, until :data:`SHARE` is used.

        Yields what to measure, and is sent the ratios.
        """
        coarse = [*self.sizes[::COARSE]]
        if self.sizes[-1] not in coarse:
            coarse.append(self.sizes[-1])
        yield from self._round(dict.fromkeys(self.candidates, coarse))
        near: list[Wish] = []
        for place, size in enumerate(coarse):
            low = coarse[place - 1] if place else size
            high = coarse[place + 1] if place + 1 < len(coarse) else size
            between = [s for s in self.sizes if low < s < high or s == size]
            for rank, candidate in enumerate(self._best(size, MOST)):
                near += [(rank, self.ratio(candidate, size), candidate, s) for s in between]
        left = int(SHARE * self.grid) - self.points
        yield from self._round(first(near, max(int(SECOND * left), len(self.sizes))))
        last = [
            (rank, self.ratio(candidate, size), candidate, size)
            for size in self.sizes
            for rank, candidate in enumerate(self._best(size, FINAL))
        ]
        yield from self._round(first(last, int(SHARE * self.grid) - self.points))

    def _round(self, jobs: Jobs) -> Rounds:
        if not jobs:
            return
        self.points += sum(len(sizes) for sizes in jobs.values())
        results = yield jobs
        for setting, ratios in results.items():
            for size in jobs[setting]:
                value = ratios.get(size, math.inf)
                self.ratios_by_setting.setdefault(setting, {}).setdefault(size, []).append(value)

    def ratio(self, setting: Setting, size: int) -> float:
        """The median ratio at a size; infinite if it was not measured, 1 for the default."""
        if setting == DEFAULT:
            return 1.0
        values = self.ratios_by_setting.get(setting, {}).get(size)
        return statistics.median(values) if values else math.inf

    def _best(self, size: int, most: int) -> list[Setting]:
        order = sorted(self.ratios_by_setting, key=lambda s: (self.ratio(s, size), s.key))
        if not order:
            return []
        bar = min(SURVIVES * min(self.ratio(order[0], size), 1.0), CLOSE)
        return [s for s in order[:most] if self.ratio(s, size) <= bar]

    def table(self) -> list[TableEntry]:
        """The entries, ascending by size; neighbours differ.  They have the least total time, where
        each further entry costs :data:`CHANGE` and a candidate must beat the default by
        ``min_gain``.

        If no size can be left to the library, every size has a candidate; if none beats the default
        anywhere, the only entry is the default.
        """
        choices = [*([DEFAULT] if self.leaves_sizes else []), *self.ratios_by_setting]
        cost = [[self._cost(choice, size) for choice in choices] for size in self.sizes]
        entries = cheapest_entries(self.sizes, choices, cost) if choices else []
        gains = not entries or self.leaves_sizes or any(map(self._gains, entries))
        return entries if entries and gains else [TableEntry(self.sizes[0], DEFAULT)]

    def _gains(self, entry: TableEntry) -> bool:
        """True if the entry beats the default by ``min_gain`` at a size where it was measured."""
        own = [size for size in self.ratios_by_setting[entry.setting] if size >= entry.size]
        best = min((self.ratio(entry.setting, size) for size in own), default=math.inf)
        return best * (1 + self.min_gain) <= 1

    def _cost(self, setting: Setting, size: int) -> float:
        """Log ratio of the time; that of the default is lowered by ``min_gain``.

        If no size can be left to the library, a candidate not measured at a size gets its ratio at
        the nearest size, plus the cost of a change.
        """
        if setting == DEFAULT:
            return -math.log1p(self.min_gain)
        ratios_by_size = self.ratios_by_setting.get(setting, {})
        near, price = size, 0.0
        if size not in ratios_by_size and not self.leaves_sizes:
            near = min(ratios_by_size, key=lambda other: (abs(math.log(other / size)), other))
            price = CHANGE
        ratio = self.ratio(setting, near)
        return math.log(ratio) + price if ratio > 0 else math.inf


def cheapest_entries(
    sizes: Sequence[int], choices: Sequence[Setting], cost: Sequence[Sequence[float]]
) -> list[TableEntry]:
    """The cheapest path through the sizes; ``cost[size][choice]`` may be infinite."""
    totals = list(cost[0])
    came: list[list[int]] = []
    for row in cost[1:]:
        cheapest = min(range(len(choices)), key=totals.__getitem__)
        origins, sums = [], []
        for choice, price in enumerate(row):
            stay, move = totals[choice], totals[cheapest] + CHANGE
            origins.append(choice if stay <= move else cheapest)
            sums.append(min(stay, move) + price)
        came.append(origins)
        totals = sums
    at = min(range(len(choices)), key=totals.__getitem__)
    path = [at]
    for origins in reversed(came):
        at = origins[at]
        path.append(at)
    path.reverse()
    entries: list[TableEntry] = []
    for size, choice in zip(sizes, path, strict=True):
        if not entries or entries[-1].setting != choices[choice]:
            entries.append(TableEntry(size, choices[choice]))
    return entries


OPERATIONS = ("bcast", "reduce", "allreduce", "allgather", "alltoall", "gather")
"""Collectives that can have a table."""


def table_candidates(space: Space) -> list[Setting]:
    """Every algorithm of a dialect's space with its further values, without the default."""
    return [setting for setting in space.enumerate() if setting != DEFAULT]


@dataclass(frozen=True)
class TableEntry:
    """``setting`` holds from ``size`` on (bytes as the micro-benchmark counts them).  With the
    default the library decides."""

    size: int
    setting: Setting


def as_rules(
    words: RuleDialect, space: Space, operation: str, ranks: int, entries: Sequence[TableEntry]
) -> list[Rule]:
    """The entries as rules for communicators of ``ranks`` ranks and more.

    The first rule begins at size 0, because every reader requires it.
    """
    whole = ranks if operation in words.sums else 1
    rules = []
    for entry in entries:
        message = 0 if entry is entries[0] else entry.size * whole
        rule = Rule(operation, ranks, message, LIBRARY_DECIDES)
        if entry.setting != DEFAULT:
            algorithm_rule = words.rule(space, operation, entry.setting)
            rule = replace(algorithm_rule, comm_size=ranks, message=message)
        rules.append(rule)
    return rules
