"""The tournament: finds the fastest algorithm at each size in three rounds, with few measurements.

The second part lists the candidates: the algorithms of one collective with segments and fanouts.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from autotune.collective_rules import Rule, rules_of
from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting, Space, Value

Jobs = Mapping[Setting, Sequence[int]]
Measure = Callable[[Jobs], Mapping[Setting, Mapping[int, float]]]
"""Runs each setting at its sizes, once, with the default among them; returns T / T_default by size.
A size that is missing has failed."""

COARSE = 3
"""The first round measures every third size."""
SURVIVES = 1.25
"""A candidate stays at a size if its time is within this factor of the best one's there ..."""
CLOSE = 1.1
"""... and within this factor of the default's."""
MOST = 4
FINAL = 3
SHARE = 0.3
"""Largest share of a full grid's measurements.  It may be exceeded with one candidate or few sizes,
where the first round and one measurement of each size's best need more."""
SECOND = 0.6
"""Share of the remaining measurements for the second round; the last round has the rest."""
CHANGE = 0.03
"""Cost of a further entry in the table, as a log ratio of the time at one size."""


Wish = tuple[int, float, Setting, int]
"""Rank of a candidate at a size, its ratio there, the candidate, and a size to measure it at."""


def first(wishes: Sequence[Wish], most: int) -> dict[Setting, list[int]]:
    """The first ``most`` measurements by rank, each once: all sizes' best before a second best."""
    ordered = sorted(wishes, key=lambda wish: (*wish[:2], wish[2].key, wish[3]))
    wanted = list(dict.fromkeys((candidate, size) for _, _, candidate, size in ordered))
    jobs: dict[Setting, list[int]] = {}
    for candidate, size in wanted[: max(most, 0)]:
        jobs.setdefault(candidate, []).append(size)
    return {candidate: sorted(sizes) for candidate, sizes in jobs.items()}


@dataclass
class Tournament:
    """The tournament of the candidates: ``run`` measures, then ``table`` gives the entries.

    ``points`` counts measurements of a candidate at a size, without the default; ``grid`` is the
    count of a full grid with three runs of each.
    """

    candidates: Sequence[Setting]
    sizes: Sequence[int]
    measure: Measure
    min_gain: float = 0.05
    points: int = 0
    seen: dict[Setting, dict[int, list[float]]] = field(default_factory=dict)

    @property
    def grid(self) -> int:
        return 3 * len(self.candidates) * len(self.sizes)

    def run(self) -> None:
        """Run three rounds: all candidates at a few sizes; the best of these at the sizes near
        those where they were fast; the best of each size once more.  In the second and third round
        the better candidates come first, until :data:`SHARE` is used."""
        coarse = [*self.sizes[::COARSE]]
        if self.sizes[-1] not in coarse:
            coarse.append(self.sizes[-1])
        self._round(dict.fromkeys(self.candidates, coarse))
        near: list[Wish] = []
        for place, size in enumerate(coarse):
            low = coarse[place - 1] if place else size
            high = coarse[place + 1] if place + 1 < len(coarse) else size
            between = [s for s in self.sizes if low < s < high or s == size]
            for rank, candidate in enumerate(self._best(size, MOST)):
                near += [(rank, self.ratio(candidate, size), candidate, s) for s in between]
        left = int(SHARE * self.grid) - self.points
        self._round(first(near, max(int(SECOND * left), len(self.sizes))))
        last = [
            (rank, self.ratio(candidate, size), candidate, size)
            for size in self.sizes
            for rank, candidate in enumerate(self._best(size, FINAL))
        ]
        self._round(first(last, int(SHARE * self.grid) - self.points))

    def _round(self, jobs: Jobs) -> None:
        if not jobs:
            return
        self.points += sum(len(sizes) for sizes in jobs.values())
        for setting, ratios in self.measure(jobs).items():
            for size in jobs[setting]:
                value = ratios.get(size, math.inf)
                self.seen.setdefault(setting, {}).setdefault(size, []).append(value)

    def ratio(self, setting: Setting, size: int) -> float:
        """The median ratio at a size; infinite if it was not measured, 1 for the default."""
        if setting == DEFAULT:
            return 1.0
        values = self.seen.get(setting, {}).get(size)
        return statistics.median(values) if values else math.inf

    def _best(self, size: int, most: int) -> list[Setting]:
        order = sorted(self.seen, key=lambda s: (self.ratio(s, size), s.key))
        if not order:
            return []
        bar = min(SURVIVES * min(self.ratio(order[0], size), 1.0), CLOSE)
        return [s for s in order[:most] if self.ratio(s, size) <= bar]

    def table(self) -> list[TableEntry]:
        """The entries, ascending by size; neighbours differ.  They have the least total time, where
        each further entry costs :data:`CHANGE` and a candidate must beat the default by
        ``min_gain``."""
        choices = [DEFAULT, *self.seen]
        cost = [[self._cost(choice, size) for choice in choices] for size in self.sizes]
        return pruned(self.sizes, choices, cost)

    def _cost(self, setting: Setting, size: int) -> float:
        """Log ratio of the time; that of the default is lowered by ``min_gain``."""
        if setting == DEFAULT:
            return -math.log1p(self.min_gain)
        ratio = self.ratio(setting, size)
        return math.log(ratio) if ratio > 0 else math.inf


def pruned(
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


OPERATIONS = {
    "bcast": False, "reduce": False, "allreduce": False,
    "allgather": True, "alltoall": True, "gather": True,
}  # fmt: skip
"""Collectives, and whether a rule counts the bytes of all ranks together (coll_tuned_dynamic_file.c
of Open MPI), while the size of the micro-benchmark is that of one rank."""
_SEGMENTS = 3
"""Number of segment sizes tried of an algorithm: smallest, middle and largest."""


def restricted(space: Space, operation: str) -> Space:
    """The space of one collective's algorithms only, with few segment sizes and fanouts.

    Raises UsageError if the MPI of the space has no such algorithms.
    """
    if operation not in OPERATIONS:
        raise UsageError(
            f"tables for {operation!r} are not supported; expected one of {', '.join(OPERATIONS)}"
        )
    main = f"coll_tuned_{operation}_algorithm"
    if main not in space:
        why = space.absent.get(main, f"space {space.name} does not have it")
        raise UsageError(f"algorithms of {operation} cannot be chosen here: {main}: {why}")
    # A rule cannot state a radix.
    kept = [p for p in space if p.name.startswith(main) and not p.name.endswith("_radix")]
    parameters = tuple(p if p.name == main else replace(p, levels=_few(p.levels)) for p in kept)
    names = {p.name for p in parameters} | set(space.facts)
    rules = tuple(c for c in space.constraints if c.expr.names <= names)
    return replace(
        space, name=f"{operation} algorithms", parameters=parameters, constraints=rules, starts=()
    )


def _few(levels: tuple[Value, ...]) -> tuple[Value, ...]:
    if len(levels) <= _SEGMENTS:
        return levels
    return (levels[0], levels[len(levels) // 2], levels[-1])


def table_candidates(space: Space) -> list[Setting]:
    """Every algorithm of a restricted space with its segments and fanouts, without the default."""
    return [setting for setting in space.enumerate() if setting != DEFAULT]


@dataclass(frozen=True)
class TableEntry:
    """``setting`` holds from ``size`` on (bytes as the micro-benchmark counts them).  With the
    default the library decides."""

    size: int
    setting: Setting


def as_rules(space: Space, operation: str, ranks: int, entries: list[TableEntry]) -> list[Rule]:
    """The entries as rules for communicators of ``ranks`` ranks and more.

    The first rule begins at size 0, because every reader requires it.
    """
    whole = ranks if OPERATIONS[operation] else 1
    found = []
    for entry in entries:
        message = 0 if entry is entries[0] else entry.size * whole
        rule = Rule(operation, ranks, message, "0")
        if entry.setting != DEFAULT:
            known = rules_of(space.launched(entry.setting)["mca"])[0]
            rule = replace(known, comm_size=ranks, message=message)
        found.append(rule)
    return found
