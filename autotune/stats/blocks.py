"""Blocks: their run order, drift of the machine over them, and the default's time near a run."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from statistics import fmean, median

import numpy as np

from autotune.stats.exact import Values
from autotune.stats.uncertainty import mad_spread

NEAREST = 3
"""Number of runs of the default on either side with which a run is compared."""

_DRIFT_SIGMAS = 4.0


def design(settings: int, blocks: int, rng: np.random.Generator) -> list[list[int]]:
    """Run order of ``blocks`` blocks, each a random order of 0 (the default) .. settings - 1.

    The orders are independent. So neither a trend within the blocks nor a periodic speed favours a
    setting: within each block every order is equally likely, whatever the earlier blocks had.
    Raises ``ValueError`` for fewer than two settings.
    """
    if settings < 2:
        raise ValueError("a block needs the default and at least one candidate")
    return [[int(i) for i in rng.permutation(settings)] for _ in range(blocks)]


def drift_blocks(times: Values, window: int = 5, *, tolerance: float = 0.10) -> list[int]:
    """Indices, in rising order, of the blocks at which the machine was not at its usual speed.

    ``times``: seconds of the default in the order of the blocks, or of each block's median over its
    settings. A block is named if the median of the ``window`` blocks around it differs from the
    median of all blocks by more than ``tolerance`` and by more than chance explains. Single slow
    runs are not drift. Trends below the tolerance do not matter, because blocks compare locally.
    The result is empty for fewer than ``window`` + 2 blocks.
    """
    logs = np.log(np.asarray(times, dtype=np.float64))
    n = logs.size
    if n < window + 2:
        return []
    half = window // 2
    local = np.array([np.median(logs[_around(i, half, n)]) for i in range(n)])
    # A shift of level hardly changes the differences of neighbours, so they measure only noise.
    noise = mad_spread(np.diff(logs)) / np.sqrt(2)
    chance = _DRIFT_SIGMAS * 1.2533 * noise / np.sqrt(window)
    is_drift = np.abs(local - np.median(logs)) > max(float(np.log1p(tolerance)), float(chance))
    return [int(i) for i in np.flatnonzero(is_drift)]


class DefaultLevel:
    """The default's time at any place of the run order.

    ``times``: seconds of its runs at the ascending ``places``. The level before and after a place
    is the median of up to ``nearest`` runs on that side, interpolated in run order (in logarithms).
    If only one side has runs, their median is taken.
    """

    def __init__(
        self, places: Sequence[int], times: Sequence[float], *, nearest: int = NEAREST
    ) -> None:
        self._places = places
        self._logs = [math.log(t) for t in times]
        self._nearest = nearest

    def at(self, place: int) -> float:
        """Seconds at ``place``; a run of the default at this place is left out.

        Raises ``ValueError`` if no other run of the default exists.
        """
        first = bisect_left(self._places, place)
        has_run = first < len(self._places) and self._places[first] == place
        before = self._side(max(first - self._nearest, 0), first)
        after = self._side(first + has_run, first + has_run + self._nearest)
        if before is None or after is None:
            one = before or after
            if one is None:
                raise ValueError("a ratio to the default needs a run of the default")
            return math.exp(one[1])
        (left, low), (right, high) = before, after
        return math.exp(low + (high - low) * (place - left) / (right - left))

    def _side(self, first: int, until: int) -> tuple[float, float] | None:
        """Mean place and median log time of some runs of the default; None if there are none."""
        places = self._places[first:until]
        return (fmean(places), median(self._logs[first:until])) if places else None


def _around(i: int, half: int, n: int) -> slice:
    """The window around block i; at the ends it is moved inwards and keeps its size."""
    start = min(max(i - half, 0), n - 2 * half - 1)
    return slice(start, start + 2 * half + 1)
