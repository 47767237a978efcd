"""Leases: how long what a process works on stays its own after its last sign of life.

A process renews its leases every :data:`BEAT_S` seconds with a sign that differs from the one
before. No clock says whether a sign is old, because clocks of hosts differ and step. Every process
counts the signs of the others itself: a lease has run out when the same sign was met at
:data:`LEASE_BEATS` looks after the first one, each at least a beat after the one before, by the
monotonic clock of this process. So a process that was stopped itself, with its whole machine
perhaps, has missed looks and not signs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

BEAT_S = 10.0
LEASE_BEATS = 6
LEASE_S = LEASE_BEATS * BEAT_S
"""Seconds for which another process watches a sign that stays the same until it takes over."""
GIVEN_UP = 0.0
"""The heartbeat of a lease that its holder gave up: it is free at once."""
Place = TypeVar("Place", bound=Hashable)


class Lease(Enum):
    """What a process knows of another one's lease from the signs that it met."""

    UNKNOWN = "unknown"
    """The sign is still the first one that was met."""
    ACTIVE = "active"
    """The sign has changed since the first look, and has not run out since then."""
    OVER = "over"
    """The lease has run out, or was given up."""


@dataclass(frozen=True)
class Sign:
    """A sign of life: another holder is another sign; None: it was never renewed."""

    holder: Hashable
    heartbeat: float | None


@dataclass(frozen=True)
class _Sighting:
    sign: Sign
    misses: int
    """Looks that met the same sign again."""
    at_s: float
    """When the sign was first met, or last counted as missed."""
    has_changed: bool

    def after(self, sign: Sign, now_s: float) -> _Sighting:
        """The sighting after one more look."""
        if sign != self.sign:
            return _Sighting(sign, 0, now_s, True)
        if now_s - self.at_s < BEAT_S:
            return self
        return _Sighting(sign, self.misses + 1, now_s, self.has_changed)

    @property
    def lease(self) -> Lease:
        if self.sign.heartbeat == GIVEN_UP or self.misses >= LEASE_BEATS:
            return Lease.OVER
        return Lease.ACTIVE if self.has_changed else Lease.UNKNOWN


class LeaseWatch:
    """The signs of others that one process met; ``clock`` gives monotonic seconds.

    Threads may share it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sightings: dict[Hashable, dict[Hashable, _Sighting]] = {}
        self._changing = threading.Lock()

    def look(self, group: Hashable, signs: Mapping[Place, Sign]) -> dict[Place, Lease]:
        """What is known of each lease of a group, by its place, after these present signs."""
        with self._changing:
            now_s = self._clock()
            before = self._sightings.get(group, {})
            after: dict[Hashable, _Sighting] = {}
            for place, sign in signs.items():
                former = before.get(place)
                fresh = _Sighting(sign, 0, now_s, False)
                after[place] = fresh if former is None else former.after(sign, now_s)
            self._sightings[group] = after
            return {place: after[place].lease for place in signs}
