"""The processor's counter, as Python code reads it: the clock of compiled code."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from runner.runtimes.core import processor

_PAIRS = 20
_APART_S = 1e-3
_TRIES = 8


@dataclass(frozen=True)
class Counter:
    """How ticks become the seconds of ``time.perf_counter``, about.

    The rate is known to some 1e-5, so the two clocks part by that share of the time since.  A time
    that compiled code has written is compared with :meth:`now` only.
    """

    count: Callable[[], int]
    tick_s: float
    """Seconds a tick; 0 if the counter has no constant rate, then the system's clock is read."""
    tick0: int
    second0: float
    """The time of ``tick0``."""

    @classmethod
    def measured(cls, count: Callable[[], int]) -> Counter:
        """The counter that ``count`` reads, measured against the system's clock."""
        if platform.machine() != "x86_64" or not _constant_rate():
            return cls(count, 0.0, 0, 0.0)
        tick0, second0 = _both(count)
        time.sleep(_APART_S)
        tick1, second1 = _both(count)
        return cls(count, (second1 - second0) / (tick1 - tick0), tick0, second0)

    def now(self) -> float:
        """Seconds on the clock that compiled code reads."""
        if self.tick_s:
            return self.second0 + self.tick_s * (self.count() - self.tick0)
        return time.perf_counter()


T = TypeVar("T")


def steady(read: Callable[[], T], now: Callable[[], float]) -> tuple[float, T]:
    """What ``read`` gives, which other threads change, and the time that it belongs to.

    Two equal readings in a row are of one moment.  Where none are found, what is read is changing
    all the time: then the shortest reading is given, which mixes moments that far apart at most.
    """
    found = []
    for _ in range(_TRIES):
        at = now()
        first = read()
        took = now() - at
        if read() == first:
            return at, first
        found.append((took, at, first))
    _, at, first = min(found, key=lambda reading: reading[0])
    return at, first


def _both(count: Callable[[], int]) -> tuple[int, float]:
    """A tick and its time: the pair that was read in the shortest time of some."""
    found = []
    for _ in range(_PAIRS):
        before = time.perf_counter()
        ticks = count()
        after = time.perf_counter()
        found.append((after - before, ticks, 0.5 * (before + after)))
    _, ticks, at = min(found)
    return ticks, at


def _constant_rate() -> bool:
    return processor.flags() >= {"constant_tsc", "nonstop_tsc"}
