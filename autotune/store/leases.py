"""Leases: how long a process keeps its work after its last sign of life.

A process renews its leases every :data:`BEAT_S` seconds with a sign that differs from the one
before. Clocks do not date signs, because clocks of hosts differ and step. Every process watches the
others' signs itself: a lease has expired if the same sign was met at :data:`LEASE_BEATS` looks
after the first one, at least a beat apart by this process's monotonic clock. So a process that was
stopped, perhaps with its machine, has missed looks, not signs.
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
"""Seconds for which another process watches an unchanged sign before it takes over."""
GIVEN_UP = 0.0
"""The heartbeat of a lease that its holder gave up: it is free at once."""
Place = TypeVar("Place", bound=Hashable)


class Lease(Enum):
    """A process's knowledge of another one's lease, from the signs that it met."""

    UNKNOWN = "unknown"
    """The sign is still the first one."""
    ACTIVE = "active"
    """The sign has changed since the first look, and has not expired since."""
    OVER = "over"
    """The lease has expired, or was given up."""


@dataclass(frozen=True)
class Sign:
    """A sign of life; a new holder has a new sign. None: it was never renewed."""

    holder: Hashable
    heartbeat: float | None


@dataclass(frozen=True)
class _Sighting:
    sign: Sign
    misses: int
    """Number of later looks that met the same sign."""
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
    """The signs that one process met of others; ``clock`` returns monotonic seconds.

    Threads may share it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sightings: dict[Hashable, dict[Hashable, _Sighting]] = {}
        self._changing = threading.Lock()

    @property
    def now_s(self) -> float:
        """Seconds by the clock of the looks."""
        return self._clock()

    def look(self, group: Hashable, signs: Mapping[Place, Sign]) -> dict[Place, Lease]:
        """The state of each lease of a group, by its place, given these present signs."""
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
