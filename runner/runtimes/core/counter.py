"""The processor's counter, read by Python code: the clock of compiled code."""

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
    """Converts ticks to approximate seconds of ``time.perf_counter``.

    The rate is known to about 1e-5, so the two clocks diverge by that share of the elapsed time.
    Compare times from compiled code only with :meth:`now`.
    """

    count: Callable[[], int]
    tick_s: float
    """Seconds per tick; 0 without a constant rate: then the system's clock is read."""
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
    """A consistent result of ``read``, which other threads change, and its time.

    Two equal consecutive readings are consistent. If the data change all the time, the shortest
    reading is returned, which mixes only moments within its duration.
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
    """A tick and its time: the pair with the shortest reading time of several."""
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
