"""Comparison of a candidate with the default: paired blocks, an exact interval, a verdict.

The estimand is the median over blocks of log(T_default / T_candidate), printed as gain = ratio - 1
(docs/explanation/design.md, "Measurement" 5). ``method="sign"`` (the default) is exact for every
distribution
of run times. ``method="wilcoxon"`` (Hodges-Lehmann) is narrower, but its interval holds only if the
log ratios are symmetric; a candidate that changes the shape of the noise breaks this.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from autotune.notes import Note
from autotune.stats.exact import (
    Flags,
    Floats,
    Values,
    middle,
    sign_rank,
    sign_tail,
    wilcoxon_rank,
    wilcoxon_tail,
)
from autotune.stats.log_ratios import LogRatios, log_ratios
from autotune.stats.uncertainty import comparison_warnings
from runner.types import finite

Verdict = Literal["better", "worse", "equivalent", "undecided"]
Method = Literal["sign", "wilcoxon"]
Bound = Literal["exact", "at most", "at least", "unknown"]

MIN_GAIN = 0.02
"""The smallest gain that is reported as faster (``--min-gain``)."""


class NoBlocks(ValueError):
    """No block was measured, so there is nothing to compare."""


@dataclass(frozen=True)
class Comparison:
    """A candidate against the default; gains are T_default / T - 1, so 0.08 is "8 % faster"."""

    gain: float
    """Gain from the median log ratio; ``nan`` if ``bound`` is "unknown"."""
    lo: float
    hi: float
    """Ends of the interval (-1 and ``inf`` if open); without an interval, the observed range."""
    n: int
    """Number of blocks used."""
    level: float
    """Exact coverage of [lo, hi] for this candidate; below 1 - alpha only without an interval."""
    nominal: float
    """Promised coverage, over all looks and finalists (0.95)."""
    interval: bool
    verdict: Verdict
    significant: bool
    """True if the interval excludes 0."""
    bound: Bound
    """The meaning of ``gain`` if more than half of the blocks are censored."""
    ties: int
    """Blocks whose two figures differ by no more than the resolution of the metric."""
    min_gain: float
    method: Method
    warnings: tuple[Note, ...]


def known_gain(value: float) -> float | None:
    """A gain or an end of its interval for JSON; None if it is open (-1, infinity) or NaN."""
    return finite(value) if value > -1 else None


def compare(
    default: Values,
    candidate: Values,
    *,
    alpha: float = 0.05,
    min_gain: float = MIN_GAIN,
    censored_default: Flags | None = None,
    censored_candidate: Flags | None = None,
    resolution: float | None = None,
    method: Method = "sign",
) -> Comparison:
    """Compare once, at a number of blocks fixed in advance.

    Use ``LookPlan.decide`` for repeated looks. The times are one run of each setting per block, in
    seconds, in the order of the blocks. The time of a censored run is the limit that ended it.
    ``resolution``: step of the metric in seconds, 0 for a clock, None to detect it. Verdicts: see
    :func:`verdict`. Raises what :func:`autotune.stats.log_ratios.log_ratios` raises, and
    :class:`NoBlocks`.
    """
    ratios = log_ratios(
        default,
        candidate,
        censored_default=censored_default,
        censored_candidate=censored_candidate,
        resolution=resolution,
    )
    rank = (sign_rank if method == "sign" else wilcoxon_rank)(ratios.n, alpha / 2)
    tail = (sign_tail if method == "sign" else wilcoxon_tail)(ratios.n, rank)
    return judge(ratios, rank, level=1 - 2 * tail, alpha=alpha, min_gain=min_gain, method=method)


def judge(
    ratios: LogRatios, rank: int, *, level: float, alpha: float, min_gain: float, method: Method
) -> Comparison:
    """The comparison whose interval ends at the ``rank``-th value from either side.

    Rank 0 means no interval. ``level`` is the exact coverage of this rank. Without an interval, it
    is the coverage of the range, 1 - 2^(1-n). Raises :class:`NoBlocks`.
    """
    if ratios.n == 0:
        raise NoBlocks("a comparison needs at least one block")
    gain, gain_low, bound = _point(ratios, method)
    end = max(rank, 1)
    lo = math.expm1(np.sort(_values(ratios.low, method))[end - 1])
    hi = math.expm1(np.sort(_values(ratios.high, method))[-end])
    interval = rank > 0
    return Comparison(
        gain=gain,
        lo=lo,
        hi=hi,
        n=ratios.n,
        level=level if interval else 1 - 2 * sign_tail(ratios.n, 1),
        nominal=1 - alpha,
        interval=interval,
        verdict=verdict(gain_low, lo, hi, min_gain) if interval else "undecided",
        significant=interval and (lo > 0 or hi < 0),
        bound=bound,
        ties=ratios.ties,
        min_gain=min_gain,
        method=method,
        warnings=comparison_warnings(ratios, interval, min_gain),
    )


def verdict(gain: float, lo: float, hi: float, min_gain: float) -> Verdict:
    """The verdict, by the first of these rules that holds.

    better: lo > 0 and gain >= min_gain. worse: hi < 0. equivalent: -min_gain < lo and hi <
    min_gain. Else undecided. If censoring leaves the point estimate open, ``gain`` is its lower
    bound.
    """
    if lo > 0 and gain >= min_gain:
        return "better"
    if hi < 0:
        return "worse"
    if lo > -min_gain and hi < min_gain:
        return "equivalent"
    return "undecided"


def _values(logs: Floats, method: Method) -> Floats:
    """The values whose order statistics are the interval's ends: the blocks, or all Walsh
    averages."""
    if method == "sign":
        return logs
    rows, columns = _pairs(logs.size)
    return np.asarray((logs[rows] + logs[columns]) / 2, dtype=np.float64)


@lru_cache(maxsize=64)
def _pairs(n: int) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    rows, columns = np.triu_indices(n)
    return rows, columns


def _point(ratios: LogRatios, method: Method) -> tuple[float, float, Bound]:
    """Point estimate, its lower bound, and the kind of estimate; the first two as gains."""
    low = middle(_values(ratios.value_low, method))
    high = middle(_values(ratios.value_high, method))
    if low == high:
        return math.expm1(low), math.expm1(low), "exact"
    if math.isfinite(low):
        return math.expm1(low), math.expm1(low), "at least"
    if math.isfinite(high):
        return math.expm1(high), -1.0, "at most"
    return math.nan, -1.0, "unknown"
