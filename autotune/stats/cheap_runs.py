"""Screening by a cheap form of a program: when a setting shows no gain, and if that is reliable.

A setting is run in the cheap form once, then the default, then the setting again. It is screened
out if both of its runs, lengthened by the smallest relevant gain, are slower than each of the last
five runs of the default. If the setting has just that gain in the cheap form, all these times come
from one distribution: each order is equally likely. So, with independent runs, it is screened out
with a probability of at most :data:`CHANCE`, for any distribution of the noise.

Cheap and full runs disagree if their rank correlation (Spearman) is too low. Noise and settings
that hardly differ lower the correlation of forms that agree, too. So the required correlation is
multiplied by the reliability of both figures: the correlation with their true values that their
noise allows (Spearman, Am. J. Psychol. 15, 1904). Some correlation is always required: an
uninformative cheap form can only lose the best setting.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.stats.exact import Floats

DEFAULTS = 5
"""Number of runs of the default with which a setting is compared."""
CHANCE = 1 / math.comb(DEFAULTS + 2, 2)
"""Largest probability that the rule screens out a setting with the smallest relevant gain."""
AGREEMENT = 0.6
"""Smallest rank correlation of true cheap and full times for screening to continue."""
LEAST_RELIABILITY = 0.5
"""The required correlation is multiplied by no less than this."""


def shows_no_gain(value_s: float, defaults_s: Sequence[float], min_gain: float) -> bool:
    """True if one run, lengthened by ``min_gain``, is slower than each of the default's last runs.

    ``value_s`` and ``defaults_s`` are seconds of the same form, those of the default in order.
    False with fewer than :data:`DEFAULTS` of them.
    """
    last = defaults_s[-DEFAULTS:]
    return len(last) == DEFAULTS and value_s * (1 + min_gain) > max(last)


def clear_step(variance: float, freedom: int) -> float:
    """Log ratio of one run to the default that noise exceeds once in a thousand runs.

    ``variance`` is that of one log time of the default, with its degrees of freedom. The default's
    level is that of two runs.
    """
    from scipy import special

    return float(special.stdtrit(freedom, 0.999)) * math.sqrt(1.5 * variance)


@dataclass(frozen=True)
class Agreement:
    """The rank correlation of two figures of ``settings`` settings, and the required one."""

    correlation: float
    needed: float
    settings: int

    @classmethod
    def of(
        cls, pairs: Sequence[tuple[float, float]], cheap_variance: float, full_variance: float
    ) -> Agreement:
        """The agreement of ``pairs``: cheap and full ratio of each setting, infinite if it failed.

        The variances are those of one log time of the default in each form.
        """
        cheap, full = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        joint_reliability = reliability(cheap, cheap_variance) * reliability(full, full_variance)
        needed = AGREEMENT * max(joint_reliability, LEAST_RELIABILITY)
        return cls(rank_correlation(cheap, full), needed, len(pairs))

    @property
    def is_refuted(self) -> bool:
        """True if the correlation is below the required one."""
        return self.correlation < self.needed


def reliability(ratios: Sequence[float], variance: float) -> float:
    """The correlation of ratios with their true values, from 0 to 1.

    ``variance`` is that of one log time of the default. The spread of the ratios is that of their
    middle half, so that a few very slow settings do not hide the equality of the others.
    """
    logs = [math.log(ratio) for ratio in ratios if 0 < ratio < math.inf]
    if len(logs) < 2:
        return 0.0
    low, high = np.quantile(logs, [0.25, 0.75])
    spread = float(high - low) / 1.349
    return math.sqrt(max(1 - 1.5 * variance / spread**2, 0.0)) if spread > 0 else 0.0


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's correlation of two figures of the same settings; infinite figures rank last.

    0 if either has only one rank, since it is then undefined.
    """
    ranks = [_ranks(figures) for figures in (one, other)]
    if any(np.ptp(column) == 0 for column in ranks if len(column)) or len(one) < 2:
        return 0.0
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(figures: Sequence[float]) -> Floats:
    """The rank of each figure from 1 on; equal ones get the mean of their ranks."""
    _, places, counts = np.unique(figures, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[places], dtype=np.float64)
