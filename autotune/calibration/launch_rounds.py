"""The rounds of a calibration: single levels, algorithms by tournaments, joint settings, and
repetitions of the fastest at other times.

All run in step, so that one round of launches has the jobs of all: each level that acts on any
operation has its own launch, and algorithms of different collectives share one.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field

from autotune.calibration.candidate_levels import join_settings, pack_launches
from autotune.calibration.points import COLLECTIVES, MESSAGES, Point, points_of
from autotune.collectives.tournament import Rounds, Tournament
from autotune.space import Setting, Space

Launches = Mapping[Setting, Sequence[Point]]
Ratios = Mapping[Setting, Mapping[Point, float]]
"""T / T_default of each setting at each point; a point that is missing has failed."""
LevelRounds = Generator[Launches, Ratios, None]

FIRST_MESSAGES = (8, 1024, 16384, 65536, 262144, 1048576)
FIRST_COLLECTIVES = (8, 4096, 65536)
"""Sizes of the first round of levels, in bytes; of collectives also the largest. A level that makes
an operation faster there is repeated at all sizes. Libraries change their protocol at 64 KiB: a
level may act there, but neither at 16 nor at 256 KiB."""
GAIN = 0.05
"""Smallest gain at any point, as a log ratio, for which a level gets more runs."""
CLEAR = 3.0
"""Number of standard deviations of one run that such a gain must have."""
FASTEST = 5
"""Number of levels that are timed again for a point."""
REPEATS = 2
MOST_WINNERS, TIMES = 16, 8
"""The number of fastest settings, and of their repetitions at the end. A machine changes its state:
two virtual processors may share a cache now but not a minute later, and a faster copy is then seven
times slower. A few runs in one minute do not see it."""
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
    ratios_by_setting: dict[Setting, dict[Point, float]] = {s: {} for s in settings}

    def keep(fresh_ratios: Ratios) -> None:
        for setting, ratios in fresh_ratios.items():
            ratios_by_setting.setdefault(setting, {}).update(ratios)

    if not settings:
        return
    keep((yield dict.fromkeys(settings, coarse)))
    repeats = promising(ratios_by_setting, scatter)
    for _ in range(REPEATS):
        if repeats:
            keep((yield repeats))
    joint = joint_settings({s: ratios_by_setting[s] for s in repeats}, space)
    for _ in range(REPEATS):
        if joint:
            yield joint


def promising(
    ratios_by_setting: Ratios, scatter: Mapping[Point, float]
) -> dict[Setting, list[Point]]:
    """The levels that are among the fastest at some point, beyond the noise, with all points of the
    operations concerned."""
    names: dict[Setting, set[str]] = {}
    for point in dict.fromkeys(p for ratios in ratios_by_setting.values() for p in ratios):
        bar = math.exp(-max(GAIN, CLEAR * scatter.get(point, 0.0)))
        order = sorted(
            (ratios[point], setting.key, setting)
            for setting, ratios in ratios_by_setting.items()
            if ratios.get(point, 1.0) < bar
        )
        for _, _, setting in order[:FASTEST]:
            names.setdefault(setting, set()).add(point.operation)
    every = (*MESSAGES, *COLLECTIVES)
    return {s: points_of(name for name in every if name in own) for s, own in names.items()}


def joint_settings(ratios_by_setting: Ratios, space: Space) -> dict[Setting, list[Point]]:
    """For each point the fastest levels of different parameters as one setting, with the points of
    the operations that want it; the settings wanted at most points."""
    points_by_setting: dict[Setting, list[Point]] = {}
    for point in dict.fromkeys(p for ratios in ratios_by_setting.values() for p in ratios):
        order = sorted(
            (ratios[point], setting.key, setting)
            for setting, ratios in ratios_by_setting.items()
            if ratios.get(point, 1.0) < _FASTER
        )
        levels: list[Setting] = []
        for _, _, setting in order:
            union = join_settings(levels)
            if any(name in union for name in setting) or len(levels) == JOINT:
                continue
            whole = union.with_values(setting)
            if space.is_canonical(whole):
                levels.append(setting)
        for size in range(2, len(levels) + 1):
            points_by_setting.setdefault(join_settings(levels[:size]), []).append(point)
    most = sorted(
        points_by_setting, key=lambda setting: (-len(points_by_setting[setting]), setting.key)
    )[:MOST_JOINT]
    return {s: points_of(dict.fromkeys(p.operation for p in points_by_setting[s])) for s in most}


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
        value with it, as an alternative if the first is uncertain. At most :data:`MOST_WINNERS`,
        with all points of the operations that they accelerate."""
        gain_of: dict[Setting, float] = {}
        for operation in (*MESSAGES, *COLLECTIVES):
            gains = {s: self._gain(s, operation) for s in self.logs}
            order = sorted((-gain, s.key, s) for s, gain in gains.items() if gain)
            if not order:
                continue
            best = order[0][2]
            other = next((s for _, _, s in order if not set(best.items()) & set(s.items())), best)
            for setting in (best, other):
                gain_of[setting] = max(gain_of.get(setting, 0.0), gains[setting])
        most = sorted(gain_of, key=lambda setting: (-gain_of[setting], setting.key))[:MOST_WINNERS]
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
        own = sum(
            len(points_of((name,))) * len(settings) for name, settings in self.algorithms.items()
        )
        return 3 * (len(self.levels) * len(whole) + own)

    def run(self) -> Generator[Launches, Ratios, None]:
        """Yield the launches round by round, and receive their ratios."""
        levels = level_rounds(self.levels, self.space, self.scatter)
        level_launches = next(levels, None)
        tournaments = {
            name: Tournament(settings, sizes_of(name), _never).rounds()
            for name, settings in self.algorithms.items()
            if settings
        }
        jobs = {name: next(rounds) for name, rounds in tournaments.items()}
        while level_launches or jobs:
            round_ratios = yield from self._round(level_launches or {}, jobs)
            if level_launches:
                level_launches = _next(levels, {s: round_ratios[s] for s in level_launches})
            jobs = {
                name: following
                for name in jobs
                if (following := _next_sizes(tournaments[name], name, jobs[name], round_ratios))
            }

        winners = self.winners()
        for _ in range(TIMES if winners else 0):
            ratios = yield winners
            self._keep({s: ratios.get(s, {}) for s in winners})

    def _round(
        self, level_launches: Launches, jobs: Mapping[str, Mapping[Setting, Sequence[int]]]
    ) -> Generator[Launches, Ratios, dict[Setting, dict[Point, float]]]:
        """One round; returns the ratios of each level and of each algorithm by itself."""
        launches: dict[Setting, list[Point]] = {
            s: list(points) for s, points in level_launches.items()
        }
        packs = pack_launches({name: list(own) for name, own in jobs.items()}, self.space)
        parts: dict[Setting, list[tuple[Setting, list[Point]]]] = {
            s: [(s, points)] for s, points in launches.items()
        }
        for pack in packs:
            own = [(s, [Point(name, size) for size in jobs[name][s]]) for name, s in pack.items()]
            whole = join_settings(list(pack.values()))
            launches.setdefault(whole, []).extend(p for _, points in own for p in points)
            parts.setdefault(whole, []).extend(own)
        ratios = yield launches
        part_ratios: dict[Setting, dict[Point, float]] = {s: {} for s in level_launches}
        single_launches: dict[Setting, list[Point]] = {}
        for whole, own in parts.items():
            for setting, points in own:
                own_ratios = {p: ratios[whole][p] for p in points if p in ratios.get(whole, {})}
                part_ratios.setdefault(setting, {}).update(own_ratios)
                if not own_ratios and len(own) > 1:
                    single_launches[setting] = points
        if single_launches:
            # One setting of a pack failed: single runs show which.
            repeats = yield single_launches
            for setting in single_launches:
                part_ratios[setting].update(repeats.get(setting, {}))
        self._keep(part_ratios)
        return part_ratios

    def _keep(self, ratios_by_setting: Mapping[Setting, Mapping[Point, float]]) -> None:
        for setting, ratios in ratios_by_setting.items():
            for point, ratio in ratios.items():
                if ratio > 0 and math.isfinite(ratio):
                    self.points += 1
                    logs = self.logs.setdefault(setting, {}).setdefault(point, [])
                    logs.append(math.log(ratio))


def sizes_of(operation: str) -> list[int]:
    """The message sizes of an operation in bytes."""
    return [point.size for point in points_of((operation,))]


def _never(jobs: object) -> dict[Setting, dict[int, float]]:
    raise AssertionError("the rounds are sent their ratios")


def _next(rounds: LevelRounds, ratios: Ratios) -> Launches | None:
    try:
        return rounds.send(ratios)
    except StopIteration:
        return None


def _next_sizes(
    rounds: Rounds,
    operation: str,
    jobs: Mapping[Setting, Sequence[int]],
    ratios: Mapping[Setting, Mapping[Point, float]],
) -> Mapping[Setting, Sequence[int]] | None:
    own = {
        setting: {p.size: ratio for p, ratio in ratios[setting].items() if p.operation == operation}
        for setting in jobs
    }
    try:
        return rounds.send(own)
    except StopIteration:
        return None
