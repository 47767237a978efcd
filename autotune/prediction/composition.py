"""Composition: the time of a program under a setting, from its work and a machine's responses.

T' = T + the sum over its work of (time that responds x (response - 1)). Computing does not respond.
The cost of its calls on the calibrated machine responds, up to the traced time in them. Beyond
that, the time by which other ranks were quicker is waiting for computing, which does not respond
either. The rest may be waiting for others' messages, as in a wavefront, or for a shared processor.
If only some ranks send, as in a pipeline across nodes, all others may wait for them. The part of it
that responds is learned from programs (``waiting``).

A round-robin mapping of ranks sends other messages between nodes: those within a node get the cost
of messages there, the others the calibrated cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from autotune.calibration.points import MESSAGES
from autotune.calibration.response import Calibration, Response, ResponseTable
from autotune.prediction.mapping import IN_TURN, MappingChange, mapping_change
from autotune.prediction.workload import Work, near, timed_s, workload
from autotune.space import DEFAULT, Setting
from runner.trace import Features

UNKNOWN = 0.25
"""Standard deviation of the log ratio of an operation under a parameter not measured on it."""
_NEAR_UNKNOWN = 1.0
"""Standard deviation of the log time of messages within a node, which is a rough one."""
_OF_DEFAULT = 8
"""Runs behind the effect of a mapping: the default's times, which every launch of a calibration
has."""
MATTERS = 0.005
"""Smallest share of the run time that a response must save or cost to matter."""


@dataclass(frozen=True)
class ComposedEffect:
    """log(T' / T) of one setting, and its standard deviation from the noise of the calibration.

    ``touched`` is the share of the run time that responds; ``uncovered`` the share on which the
    setting may act without any measurement. ``runs``: the fewest runs behind a response that
    matters, 0 if none does.
    """

    log: float
    sd: float
    touched: float
    uncovered: float
    runs: int


class _Part(NamedTuple):
    """A share of the run time, its ratio under a setting, the standard deviation of the ratio's
    logarithm, and the runs behind it."""

    share: float
    ratio: float
    sd: float
    runs: int


@dataclass(frozen=True)
class Composition:
    """A program on a calibrated machine.

    ``shares``: the share of the run time of each work that responds to settings, 0 to 1.
    ``communicates``: the share of all MPI calls. ``blind``: works that the table does not cover,
    such as messages within a node in a program across nodes. ``moved``: the change by a mapping by
    node; None if no change is known.
    """

    table: ResponseTable
    work: tuple[Work, ...]
    shares: tuple[float, ...]
    blind: tuple[bool, ...]
    communicates: float = 0.0
    moved: MappingChange | None = None

    @classmethod
    def of(
        cls, features: Features, calibration: Calibration, waiting: float = 0.0
    ) -> Composition | None:
        """``waiting``: the part of the waiting for messages that responds, 0 to 1.

        None if the calibration has no table for the program's nodes, or if the features have no
        profile.
        """
        table = calibration.table(features.ranks, features.nodes)
        if table is None or features.profile is None:
            return None
        work = tuple(workload(features.profile, features.values["p2p_neighbours"], table.us))
        whole = timed_s(features)
        blind = tuple(w.far is not None and w.far != (table.nodes > 1) for w in work)
        probes = [near if is_blind and table.nodes > 1 else table.us for is_blind in blind]
        cost = [
            w.calls * (us(w.operation, w.size) or 0.0) / 1e6
            for w, us in zip(work, probes, strict=True)
        ]
        shares = []
        for w, cost_s in zip(work, cost, strict=True):
            own = min(cost_s, w.seconds)
            # The rank that sends most may hold up all others.
            largest = max(w.least, min(cost_s / w.ranks_share, w.sending))
            shares.append((own + waiting * max(largest - own, 0.0)) / whole)
        most = max(1.0, sum(shares))
        inside = sum(w.seconds for w in work) / whole
        own_shares = tuple(s / most for s in shares)
        return cls(table, work, own_shares, blind, min(inside, 1.0), mapping_change(features))

    @property
    def responds(self) -> float:
        """The share of the run time that responds to settings at all."""
        return sum(self.shares)

    def log(self, setting: Setting) -> ComposedEffect:
        """The expected effect of a setting."""
        parts: list[_Part] = []
        gap = unknown = 0.0
        other = self.moved if setting.get("map_by") == IN_TURN["map_by"] else None
        for work, whole_share, blind in zip(self.work, self.shares, self.blind, strict=True):
            share = whole_share
            response, whole = response_of(self.table, setting, work.operation, work.size)
            if other is not None and work.operation in MESSAGES:
                changes = share * (other.leave if blind else 1 - other.stay)
                ratio = self._across(work, blind)
                parts.append(_Part(changes, ratio, _NEAR_UNKNOWN, _OF_DEFAULT))
                # The effect of the setting's other parameters on these messages was not measured.
                gap += 0.0 if whole and response is None else changes * ratio
                share -= changes
            elif other is not None:
                unknown += share**2  # Its messages go between unknown other ranks.
            if blind:
                acts = not whole or response is not None
                gap += share if acts else 0.0
                continue
            gap += 0.0 if whole else share
            if response is not None:
                parts.append(_Part(share, math.exp(response.log), response.sd, response.runs))
        variance = sum((p.share * p.ratio * p.sd) ** 2 for p in parts)
        variance += (gap**2 + unknown) * UNKNOWN**2
        left = max(1 + sum(p.share * (p.ratio - 1) for p in parts), 0.02)
        runs = [p.runs for p in parts if p.share * abs(p.ratio - 1) > MATTERS]
        responding = sum(p.share for p in parts)
        return ComposedEffect(
            math.log(left), math.sqrt(variance) / left, responding, gap, min(runs, default=0)
        )

    def _across(self, work: Work, blind: bool) -> float:
        """Ratio of the time of messages between nodes that would be within one, or (``blind``) the
        inverse."""
        inside = near(work.operation, work.size)
        far = max(self.table.us(work.operation, work.size) or inside, inside)
        return far / inside if blind else inside / far

    def most(self) -> float:
        """The largest gain that any measured setting could give, each work with its best response
        and, if helpful, with another mapping: a fraction of the run time's speed."""
        saving = 0.0
        for work, share, blind in zip(self.work, self.shares, self.blind, strict=True):
            if blind:
                continue
            best = min(
                (r.shrunk for r in _all(self.table, work.operation, work.size).values()),
                default=0.0,
            )
            ratio = math.exp(min(best, 0.0))
            if self.moved is not None and work.operation in MESSAGES:
                stay = self.moved.stay
                ratio = min(ratio, stay * ratio + (1 - stay) * self._across(work, blind))
            saving += share * (1 - ratio)
        return 1 / max(1 - saving, 0.02) - 1


@lru_cache(maxsize=65536)
def response_of(
    table: ResponseTable, setting: Setting, operation: str, size: float
) -> tuple[Response | None, bool]:
    """The response of an operation to a setting, and True if measurements cover all of it.

    Used are the largest measured parts of the setting, first those measured at several times, and
    then its other parameters that were measured alone. Their logarithms, shrunk towards 0 by their
    noise, are added. None if no part was measured here.
    """
    by_setting = _all(table, operation, size)
    parts = sorted(
        (s for s in by_setting if all(setting.get(n) == v for n, v in s.items())),
        key=lambda s: (by_setting[s].runs == 1, -len(s), s.key),
    )
    rest = dict(setting)
    responses: list[Response] = []
    for part in parts:
        if all(name in rest for name in part):
            responses.append(by_setting[part])
            for name in part:
                del rest[name]
    open_ = [name for name in rest if name in _acting(table, operation)]
    if not responses:
        return None, not open_
    # Levels with the same mechanism do not gain twice: nothing is faster than the measured best.
    most = min(one.shrunk for one in by_setting.values())
    log = max(sum(one.shrunk for one in responses), min(most, 0.0))
    sd = math.sqrt(sum(one.sd**2 for one in responses))
    return Response(log, sd, min(one.runs for one in responses)), not open_


@lru_cache(maxsize=4096)
def _all(table: ResponseTable, operation: str, size: float) -> dict[Setting, Response]:
    responses = {s: table.response(s, operation, size) for s in table.responses}
    return {
        s: response for s, response in responses.items() if response is not None and s != DEFAULT
    }


@lru_cache(maxsize=256)
def _acting(table: ResponseTable, operation: str) -> frozenset[str]:
    """Parameters that were measured for an operation."""
    return frozenset(
        name
        for setting, points in table.responses.items()
        if any(point.operation == operation for point in points)
        for name in setting
    )


def proposals(
    composition: Composition,
    settings: Sequence[Setting],
    allows: Callable[[Setting], bool] = lambda setting: True,
    most: int = 40,
) -> list[Setting]:
    """Settings that may be fast for the program, composed greedily of measured ones with different
    parameters; the best single ones come first. Only those for which ``allows`` is true."""
    single = sorted((composition.log(s).log, s.key, s) for s in settings if s != DEFAULT)
    useful = [s for log, _, s in single if log < 0 and allows(s)][:most]
    proposal_set: dict[Setting, None] = dict.fromkeys(useful)
    for start in useful[:3]:
        whole = start
        for other in useful:
            if any(name in whole for name in other):
                continue
            joint = whole.with_values(other)
            if composition.log(joint).log < composition.log(whole).log - MATTERS and allows(joint):
                whole = joint
                proposal_set[whole] = None
    return list(proposal_set)
