"""Slow launches: a test for a difference that the median does not show.

A launch is slow if it takes a multiple of the default's present time that noise cannot explain: 1.5
on a quiet machine, 2 on a noisy one. If a fifth of the launches are slow, the medians do not show
it. Fisher's exact test compares the rates of slow launches, one-sided in each direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from autotune.stats.exact import hypergeometric, root

SLOW_LEAST, SLOW_MOST = 1.5, 2.0
"""Multiples of the default's time from which a launch is slow, on a quiet and a noisy machine."""
_SIGMAS = 6.0
_POWER = 0.8

SlowVerdict = Literal["rarer", "more frequent", "no difference shown"]


def slow_from(noise: float) -> float:
    """The multiple of the default's time from which a launch is slow.

    ``noise``: standard deviation of the logarithm of one run of the default.
    """
    return min(max(math.exp(_SIGMAS * noise), SLOW_LEAST), SLOW_MOST)


@dataclass(frozen=True)
class SlowLaunches:
    """Slow launches of a candidate beside the default's.

    ``threshold``: the multiple of the usual time from which they count as slow. ``rarer_from`` and
    ``more_from`` are rates (0..1) of the candidate that this number of launches would show with 80
    % probability; None if even a rate of 0 or 1 would not be shown.
    """

    slow: int
    launches: int
    default_slow: int
    default_launches: int
    verdict: SlowVerdict
    alpha: float
    rarer_from: float | None
    more_from: float | None
    threshold: float = SLOW_MOST

    @property
    def rate(self) -> float:
        """Share of slow launches among the candidate's; 0 if it has no launches."""
        return self.slow / self.launches if self.launches else 0.0


def slow_launches(
    slow: int,
    launches: int,
    default_slow: int,
    default_launches: int,
    *,
    alpha: float,
    threshold: float = SLOW_MOST,
) -> SlowLaunches:
    """Compare the rates; ``alpha`` (0..1) is the chance of naming a difference if there is none.

    Raises ValueError for more slow launches than launches.
    """
    if not (0 <= slow <= launches and 0 <= default_slow <= default_launches):
        raise ValueError("slow launches must lie between 0 and the number of launches")
    few, many = _critical(launches, default_slow, default_launches, alpha / 2)
    verdict: SlowVerdict = "no difference shown"
    if few is not None and slow <= few:
        verdict = "rarer"
    elif many is not None and slow >= many:
        verdict = "more frequent"
    return SlowLaunches(
        slow=slow,
        launches=launches,
        default_slow=default_slow,
        default_launches=default_launches,
        verdict=verdict,
        alpha=alpha,
        rarer_from=None if few is None else _rate_at_most(few, launches),
        more_from=None if many is None else 1 - _rate_at_most(launches - many, launches),
        threshold=threshold,
    )


@lru_cache(maxsize=4096)
def _critical(
    launches: int, default_slow: int, default_launches: int, tail: float
) -> tuple[int | None, int | None]:
    """The largest number of slow launches that is "rarer", the smallest that is "more frequent"."""
    total = launches + default_launches
    few = many = None
    for count in range(launches + 1):
        chances = hypergeometric(total, count + default_slow, launches)
        if chances[: count + 1].sum() <= tail:
            few = count
        if many is None and chances[count:].sum() <= tail:
            many = count
    return few, many


def _rate_at_most(count: int, launches: int) -> float:
    """The rate at which ``count`` or fewer of ``launches`` are slow with 80 % probability."""
    from scipy import special

    if count >= launches:
        return 1.0

    def excess(rate: float) -> float:
        return float(special.bdtr(count, launches, rate)) - _POWER

    return root(excess, 0.0, 1.0)
