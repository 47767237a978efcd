"""The rounds of a calibration: levels by themselves, algorithms by tournaments, joint settings, and
the fastest of all again at other times.

All of them run in step, so that one round of launches has the jobs of all: levels that act on any
operation have a launch each, and algorithms of different collectives share one.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field

from autotune.calibration.candidates import joined, packed
from autotune.calibration.points import COLLECTIVES, MESSAGES, Point, points_of
from autotune.collectives.tournament import Rounds, Tournament
from autotune.space import Setting, Space

Wanted = Mapping[Setting, Sequence[Point]]
Found = Mapping[Setting, Mapping[Point, float]]
"""T / T_default of each setting at each point; a point that is missing has failed."""
LevelRounds = Generator[Wanted, Found, None]

FIRST_MESSAGES = (8, 1024, 16384, 65536, 262144, 1048576)
FIRST_COLLECTIVES = (8, 4096, 65536)
"""Sizes of the first round of levels, in bytes; of collectives also the largest.  A level that
makes an operation faster there is timed again at all its sizes.  Libraries change their protocol
at 64 KiB: a level may act there, and neither at 16 nor at 256 KiB."""
GAIN = 0.05
"""Smallest gain at any point, as a log ratio, that calls for more runs of a level."""
CLEAR = 3.0
"""Number of standard deviations of one run that such a gain must have."""
FASTEST = 5
"""Number of levels that are timed again for a point."""
REPEATS = 2
MOST_WINNERS, TIMES = 16, 8
"""The fastest settings are timed so many times more, at the end.  A machine changes its state: two
virtual processors that share a cache now may not a minute later, and a copy that was faster is then
seven times slower.  A few runs of one minute do not see it."""
JOINT, MOST_JOINT = 3, 10
"""Largest number of levels in a joint setting, and of joint settings."""
_FASTER = 0.97
"""A level joins others at a point if its ratio there is below this."""


def coarse_points() -> list[Point]:
    """The points of the first round of levels."""
    points = points_of(MESSAGES, FIRST_MESSAGES)
    for name in COLLECTIVES:
        own = points_of((name,))
        points += [point for point in own if point.size in FIRST_COLLECTIVES or point == own[-1]]
    return points


def level_rounds(
    settings: Sequence[Setting], space: Space, scatter: Mapping[Point, float]
) -> LevelRounds:
    """Each level once at a few sizes; those with a gain twice more; then the best of different
    parameters together, twice.

    ``scatter`` has the standard deviation of one log ratio at each point; it may grow between
    rounds.
    """
    coarse = coarse_points()
    seen: dict[Setting, dict[Point, float]] = {s: {} for s in settings}

    def keep(found: Found) -> None:
        for setting, ratios in found.items():
            seen.setdefault(setting, {}).update(ratios)

    if not settings:
        return
    keep((yield dict.fromkeys(settings, coarse)))
    wanted = promising(seen, scatter)
    for _ in range(REPEATS):
        if wanted:
            keep((yield wanted))
    joint = joint_settings({s: seen[s] for s in wanted}, space)
    for _ in range(REPEATS):
        if joint:
            yield joint


def promising(seen: Found, scatter: Mapping[Point, float]) -> dict[Setting, list[Point]]:
    """The levels that are among the fastest at some point, by more than the noise, with all points
    of the operations of which that is true."""
    names: dict[Setting, set[str]] = {}
    for point in dict.fromkeys(p for ratios in seen.values() for p in ratios):
        bar = math.exp(-max(GAIN, CLEAR * scatter.get(point, 0.0)))
        order = sorted(
            (ratios[point], setting.key, setting)
            for setting, ratios in seen.items()
            if ratios.get(point, 1.0) < bar
        )
        for _, _, setting in order[:FASTEST]:
            names.setdefault(setting, set()).add(point.operation)
    every = (*MESSAGES, *COLLECTIVES)
    return {s: points_of(name for name in every if name in own) for s, own in names.items()}


def joint_settings(seen: Found, space: Space) -> dict[Setting, list[Point]]:
    """For each point the fastest levels of different parameters as one setting, with the points of
    the operations for which it is wanted; those that are wanted at most points."""
    wanted: dict[Setting, list[Point]] = {}
    for point in dict.fromkeys(p for ratios in seen.values() for p in ratios):
        order = sorted(
            (ratios[point], setting.key, setting)
            for setting, ratios in seen.items()
            if ratios.get(point, 1.0) < _FASTER
        )
        chosen: list[Setting] = []
        for _, _, setting in order:
            together = joined(chosen)
            if any(name in together for name in setting) or len(chosen) == JOINT:
                continue
            whole = together.with_values(setting)
            if space.is_canonical(whole):
                chosen.append(setting)
        for size in range(2, len(chosen) + 1):
            wanted.setdefault(joined(chosen[:size]), []).append(point)
    most = sorted(wanted, key=lambda setting: (-len(wanted[setting]), setting.key))[:MOST_JOINT]
    return {s: points_of(dict.fromkeys(p.operation for p in wanted[s])) for s in most}


@dataclass
class CalibrationRounds:
    """All rounds of one table.  ``logs`` has the log ratios of every run of a setting at a point;
    ``points`` counts measurements of a setting at a point, ``grid`` those of a full grid with three
    runs of each."""

    space: Space
    levels: Sequence[Setting]
    algorithms: Mapping[str, Sequence[Setting]]
    scatter: dict[Point, float] = field(default_factory=dict)
    logs: dict[Setting, dict[Point, list[float]]] = field(default_factory=dict)
    points: int = 0

    def winners(self) -> dict[Setting, list[Point]]:
        """For each operation the setting with the largest gains, and the best one that shares no
        value with it: where the first is uncertain, another way may be not.  At most
        :data:`MOST_WINNERS`, with all points of the operations that they make faster."""
        chosen: dict[Setting, float] = {}
        for operation in (*MESSAGES, *COLLECTIVES):
            gains = {s: self._gain(s, operation) for s in self.logs}
            order = sorted((-gain, s.key, s) for s, gain in gains.items() if gain)
            if not order:
                continue
            best = order[0][2]
            other = next((s for _, _, s in order if not set(best.items()) & set(s.items())), best)
            for setting in (best, other):
                chosen[setting] = max(chosen.get(setting, 0.0), gains[setting])
        most = sorted(chosen, key=lambda setting: (-chosen[setting], setting.key))[:MOST_WINNERS]
        every = (*MESSAGES, *COLLECTIVES)
        return {s: points_of(name for name in every if self._gain(s, name)) for s in most}

    def _gain(self, setting: Setting, operation: str) -> float:
        """Sum of the gains at the points of an operation, beyond noise, as log ratios."""
        means = {
            point: statistics.fmean(logs)
            for point, logs in self.logs[setting].items()
            if point.operation == operation
        }
        bars = {p: max(GAIN, CLEAR * self.scatter.get(p, 0.0)) for p in means}
        return sum(-mean for p, mean in means.items() if mean < -bars[p])

    @property
    def grid(self) -> int:
        whole = points_of((*MESSAGES, *COLLECTIVES))
        own = sum(len(points_of((name,))) * len(found) for name, found in self.algorithms.items())
        return 3 * (len(self.levels) * len(whole) + own)

    def run(self) -> Generator[Wanted, Found, None]:
        """Yield the launches of one round after the other, and be sent their ratios."""
        levels = level_rounds(self.levels, self.space, self.scatter)
        wanted = next(levels, None)
        tournaments = {
            name: Tournament(found, sizes_of(name), _never).rounds()
            for name, found in self.algorithms.items()
            if found
        }
        jobs = {name: next(rounds) for name, rounds in tournaments.items()}
        while wanted or jobs:
            found = yield from self._round(wanted or {}, jobs)
            if wanted:
                wanted = _next(levels, {s: found[s] for s in wanted})
            jobs = {
                name: following
                for name in jobs
                if (following := _next_sizes(tournaments[name], name, jobs[name], found))
            }

        winners = self.winners()
        for _ in range(TIMES if winners else 0):
            ratios = yield winners
            self._keep({s: ratios.get(s, {}) for s in winners})

    def _round(
        self, wanted: Wanted, jobs: Mapping[str, Mapping[Setting, Sequence[int]]]
    ) -> Generator[Wanted, Found, dict[Setting, dict[Point, float]]]:
        """One round; returns the ratios of each level and of each algorithm by itself."""
        launches: dict[Setting, list[Point]] = {s: list(points) for s, points in wanted.items()}
        packs = packed({name: list(own) for name, own in jobs.items()}, self.space)
        parts: dict[Setting, list[tuple[Setting, list[Point]]]] = {
            s: [(s, points)] for s, points in launches.items()
        }
        for pack in packs:
            own = [(s, [Point(name, size) for size in jobs[name][s]]) for name, s in pack.items()]
            whole = joined(list(pack.values()))
            launches.setdefault(whole, []).extend(p for _, points in own for p in points)
            parts.setdefault(whole, []).extend(own)
        ratios = yield launches
        found: dict[Setting, dict[Point, float]] = {s: {} for s in wanted}
        apart: dict[Setting, list[Point]] = {}
        for whole, own in parts.items():
            for setting, points in own:
                there = {p: ratios[whole][p] for p in points if p in ratios.get(whole, {})}
                found.setdefault(setting, {}).update(there)
                if not there and len(own) > 1:
                    apart[setting] = points
        if apart:
            # One of a pack failed: each by itself shows which.
            again = yield apart
            for setting in apart:
                found[setting].update(again.get(setting, {}))
        self._keep(found)
        return found

    def _keep(self, found: Mapping[Setting, Mapping[Point, float]]) -> None:
        for setting, ratios in found.items():
            for point, ratio in ratios.items():
                if ratio > 0 and math.isfinite(ratio):
                    self.points += 1
                    known = self.logs.setdefault(setting, {}).setdefault(point, [])
                    known.append(math.log(ratio))


def sizes_of(operation: str) -> list[int]:
    """The message sizes of an operation in bytes."""
    return [point.size for point in points_of((operation,))]


def _never(jobs: object) -> dict[Setting, dict[int, float]]:
    raise AssertionError("the rounds are sent their ratios")


def _next(rounds: LevelRounds, found: Found) -> Wanted | None:
    try:
        return rounds.send(found)
    except StopIteration:
        return None


def _next_sizes(
    rounds: Rounds,
    operation: str,
    jobs: Mapping[Setting, Sequence[int]],
    found: Mapping[Setting, Mapping[Point, float]],
) -> Mapping[Setting, Sequence[int]] | None:
    own = {
        setting: {p.size: ratio for p, ratio in found[setting].items() if p.operation == operation}
        for setting in jobs
    }
    try:
        return rounds.send(own)
    except StopIteration:
        return None
