"""Log ratios of blocks, each as an interval [low, high].

A censored run is only known to be slower than its limit. A rounded metric is only known to half its
resolution. Both make the log ratio of a block an interval. Every statistic of this package is
monotone in the blocks. So its lower end is computed from the ``low`` values and its upper end from
the ``high`` values, and this keeps the promised coverage exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from autotune.errors import WorkError
from autotune.stats.exact import Flags, Floats, Values, middle

_DIGITS = 12  # significant digits with which a value is read as a decimal number
_GCD_RUNS = 8  # runs, of three different values, from which a common divisor is no coincidence


@dataclass(frozen=True)
class LogRatios:
    """log(T_default / T_candidate) per block; arrays of shape (blocks,), positive means faster.

    ``low`` and ``high`` include censoring and resolution. ``value_low`` and ``value_high`` include
    only censoring and take the recorded figures as exact; the point estimate uses them.
    """

    low: Floats
    high: Floats
    value_low: Floats
    value_high: Floats
    resolution: float
    """Step of the metric in seconds; 0 if it has none."""
    coarseness: float
    """The step as a share of the median run time: the smallest visible gain."""
    ties: int
    """Complete blocks whose two figures differ by no more than the resolution."""

    @property
    def n(self) -> int:
        """Number of blocks."""
        return int(self.low.size)

    def first(self, n: int) -> LogRatios:
        """The log ratios of the first ``n`` blocks."""
        cut = (self.low[:n], self.high[:n], self.value_low[:n], self.value_high[:n])
        ties = _ties(self.low[:n], self.high[:n])
        return LogRatios(*cut, self.resolution, self.coarseness, ties)


def detect_resolution(values: Values) -> float | None:
    """The step of which all values are multiples (NPB prints 0.01 s), in the unit of the values.

    The step is read from the decimals of the values. With 8 runs or more, of at least 3 different
    values, their greatest common divisor counts too (clock ticks of 4 ms). Returns None if the step
    is below 1e-7 of the largest value, or if no value is finite and positive.
    """
    usable = [float(v) for v in values if np.isfinite(v) and v > 0]
    distinct = set(usable)
    if not distinct:
        return None
    largest = max(distinct)
    decimals = []
    for value in distinct:
        decimals.append(Decimal(f"{value:.{_DIGITS}g}").normalize())
        if 10.0 ** int(decimals[-1].as_tuple().exponent) < 1e-7 * largest:
            return None  # a clock: most lists end here at their first value
    exponent = min(int(d.as_tuple().exponent) for d in decimals)
    step = 10.0**exponent
    if len(usable) >= _GCD_RUNS and len(distinct) >= 3:
        multiples = np.array([int(d.scaleb(-exponent)) for d in decimals], dtype=np.int64)
        step *= int(np.gcd.reduce(multiples))
    return float(f"{step:.{_DIGITS}g}")


def validate_times(values: Values, what: str) -> Floats:
    """The values as an array; raises ``WorkError`` with the first invalid time."""
    array = np.asarray(values, dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(array) | (array < 0))
    if wrong.size:
        raise WorkError(
            f"{what}: run {int(wrong[0]) + 1} has the time {array[wrong[0]]}; expected a "
            "finite number of seconds, 0 or more; check --metric.",
            code="metric.no_time",
        )
    return array


def flags(censoring: Flags | None, n: int) -> np.typing.NDArray[np.bool_]:
    """The ``censoring`` flags, shape (n,); raises ``ValueError`` for another length."""
    array = np.zeros(n, dtype=bool) if censoring is None else np.asarray(censoring, dtype=bool)
    if array.shape != (n,):
        raise ValueError(f"censored has {array.size} entries for {n} runs")
    return array


def log_ratios(
    default: Values,
    candidate: Values,
    *,
    censored_default: Flags | None = None,
    censored_candidate: Flags | None = None,
    resolution: float | None = None,
) -> LogRatios:
    """Bounds of log(default / candidate) per block; times in seconds, one of each per block.

    ``resolution``: step of the metric in seconds; 0 for a clock, None to detect it. The time of a
    censored run is the limit that ended it. Raises ``WorkError`` for invalid times and for 0 s in a
    metric without a step, ``ValueError`` for sequences of different length.
    """
    slow, fast = validate_times(default, "default"), validate_times(candidate, "candidate")
    if slow.shape != fast.shape:
        raise ValueError(f"{slow.size} runs of the default for {fast.size} of the candidate")
    if resolution is None:
        resolution = _resolution(slow, fast, censored_default, censored_candidate)
    if resolution == 0 and slow.size and min(slow.min(), fast.min()) == 0:
        raise WorkError(
            "A run time is 0 s: the metric is too coarse for this input. Use a longer input, or "
            "leave --metric out to measure the wall time.",
            code="metric.zero",
        )
    cut_d = flags(censored_default, slow.size)
    cut_c = flags(censored_candidate, fast.size)
    floor = resolution / 2 if resolution else 0.0
    value = np.log(np.maximum(slow, floor)) - np.log(np.maximum(fast, floor))
    with np.errstate(divide="ignore"):
        low = np.log(np.maximum(slow - floor, 0)) - np.log(fast + floor)
        high = np.log(slow + floor) - np.log(np.maximum(fast - floor, 0))
    touching = np.abs(slow - fast) <= resolution * (1 + 1e-9)
    low = np.where(touching, np.minimum(low, 0.0), low)  # exact zeros: floats miss 0 by rounding
    high = np.where(touching, np.maximum(high, 0.0), high)
    low, high = np.where(cut_c, -np.inf, low), np.where(cut_d, np.inf, high)
    return LogRatios(
        low=low,
        high=high,
        value_low=np.where(cut_c, -np.inf, value),
        value_high=np.where(cut_d, np.inf, value),
        resolution=float(resolution),
        coarseness=_coarseness(resolution, slow, fast),
        ties=_ties(low, high),
    )


def _ties(low: Floats, high: Floats) -> int:
    finite = np.isfinite(low) & np.isfinite(high)
    return int(np.sum(finite & (low <= 0) & (high >= 0)))


def _coarseness(resolution: float, slow: Floats, fast: Floats) -> float:
    if not resolution or not slow.size:
        return 0.0
    return float(resolution / max(min(middle(slow), middle(fast)), resolution))


def _resolution(
    slow: Floats,
    fast: Floats,
    censored_default: Flags | None,
    censored_candidate: Flags | None,
) -> float:
    """Step of the complete runs; time limits are round numbers and do not show the step."""
    whole_d = slow[~flags(censored_default, slow.size)]
    whole_c = fast[~flags(censored_candidate, fast.size)]
    return detect_resolution([*whole_d, *whole_c]) or 0.0


def noise_band(
    ratio: float, variance: float, freedom: int, runs: int, defaults: int, level: float = 0.95
) -> tuple[float, float] | None:
    """Interval of a ratio of times from the noise of single runs, for a first look.

    ``variance`` is that of one log time with ``freedom`` degrees of freedom; the ratio compares the
    median of ``runs`` runs with that of ``defaults`` runs of the default. It ignores the selection
    among many settings, so it proves nothing. None without a degree of freedom.
    """
    if freedom < 1 or runs < 1 or defaults < 1:
        return None
    from scipy import special

    half = float(special.stdtrit(freedom, (1 + level) / 2))
    half *= math.sqrt(variance * (1 / runs + 1 / defaults))
    return ratio * math.exp(-half), ratio * math.exp(half)
