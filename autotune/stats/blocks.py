"""Order of runs, drift of the machine, and search runs seen relative to the default near them."""

from __future__ import annotations

import numpy as np

from autotune.stats.exact import Flags, Floats, Values
from autotune.stats.warn import mad_spread

_DRIFT_SIGMAS = 4.0


def design(settings: int, blocks: int, rng: np.random.Generator) -> list[list[int]]:
    """Run order of ``blocks`` blocks, each a random order of 0 (the default) .. settings - 1.

    Positions are balanced: in every group of ``settings`` blocks each setting runs once at each
    position (a random Latin square), so that neither going first nor a trend within the blocks
    favours one.  Raises ``ValueError`` for fewer than two settings.
    """
    if settings < 2:
        raise ValueError("a block needs the default and at least one candidate")
    order: list[list[int]] = []
    while len(order) < blocks:
        names = rng.permutation(settings)
        for shift in rng.permutation(settings):
            order.append([int(i) for i in np.roll(names, int(shift))])
    return order[:blocks]


def drifted(times: Values, window: int = 5, *, tolerance: float = 0.10) -> list[int]:
    """Blocks at which the machine was not at its usual speed; indices in rising order.

    ``times``: seconds of the default in the order of the blocks (or of each block's median over
    its settings).  A block is named when the median of the ``window`` blocks around it is away from
    the median of all by more than ``tolerance`` and by more than chance explains.  Single slow
    runs are not drift; slow trends below the tolerance do not matter, for blocks compare locally.
    Fewer than ``window`` + 2 blocks cannot tell: empty.
    """
    logs = np.log(np.asarray(times, dtype=np.float64))
    n = logs.size
    if n < window + 2:
        return []
    half = window // 2
    local = np.array([np.median(logs[_around(i, half, n)]) for i in range(n)])
    # Differences of neighbours do not see a shift of level, so they measure the noise alone.
    noise = mad_spread(np.diff(logs)) / np.sqrt(2)
    chance = _DRIFT_SIGMAS * 1.2533 * noise / np.sqrt(window)
    away = np.abs(local - np.median(logs)) > max(float(np.log1p(tolerance)), float(chance))
    return [int(i) for i in np.flatnonzero(away)]


def ratio_to_default(times: Values, is_default: Flags, *, nearest: int = 3) -> list[float]:
    """Every run's time divided by what the default takes at that moment; shape as ``times``.

    ``times``: seconds in run order, with a flag for runs of the default.  The default's level
    before and after a run is the median of its up to ``nearest`` runs on that side, interpolated in
    run order (in logarithms); on one side only, it is taken as it is.  A run of the default is
    not compared with itself.  Raises ``ValueError`` if no other run of the default exists.
    """
    logs = np.log(np.asarray(times, dtype=np.float64))
    places = np.flatnonzero(np.asarray(is_default, dtype=bool))
    ratios = []
    for place, log in enumerate(logs):
        before = places[places < place][-nearest:]
        after = places[places > place][:nearest]
        if before.size + after.size == 0:
            raise ValueError("a ratio to the default needs a run of the default")
        ratios.append(float(np.exp(log - _level_at(place, logs, before, after))))
    return ratios


def _around(i: int, half: int, n: int) -> slice:
    """The window around block i, moved inwards at the ends so that its size stays."""
    start = min(max(i - half, 0), n - 2 * half - 1)
    return slice(start, start + 2 * half + 1)


def _level_at(
    place: int, logs: Floats, before: np.typing.NDArray[np.int_], after: np.typing.NDArray[np.int_]
) -> float:
    if before.size == 0 or after.size == 0:
        return float(np.median(logs[before if before.size else after]))
    ends = [float(before.mean()), float(after.mean())]
    return float(np.interp(place, ends, [np.median(logs[before]), np.median(logs[after])]))
