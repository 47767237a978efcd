"""Screening by a cheap form of a program: when a setting shows no gain, and whether that tells.

A setting is run in the cheap form once, then the default, then the setting again. It is screened
out if both of its runs, made longer by the smallest gain that is looked for, are slower than each
of the last five runs of the default. If the setting has at least that gain in the cheap form, all
of these times come from one distribution, at best: each order of them is equally likely. So the
rule screens the setting out with a probability of at most :data:`CHANCE`, whatever the distribution
of the noise is, if the runs are independent.

Cheap and full runs agree if their rank correlation (Spearman) is high enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

DEFAULTS = 5
"""Runs of the default with which a setting is compared."""
CHANCE = 1 / math.comb(DEFAULTS + 2, 2)
"""Largest probability that the rule screens out a setting with the gain that is looked for."""
AGREEMENT = 0.6
"""Smallest rank correlation of cheap and full runs with which screening goes on."""


def shows_no_gain(value_s: float, defaults_s: Sequence[float], min_gain: float) -> bool:
    """Whether one run, made longer by ``min_gain``, is slower than each of the default's last runs.

    ``value_s`` and ``defaults_s`` are seconds of the same form, those of the default in order.
    False as long as there are not :data:`DEFAULTS` of them.
    """
    last = defaults_s[-DEFAULTS:]
    return len(last) == DEFAULTS and value_s * (1 + min_gain) > max(last)


def clear_step(variance: float, freedom: int) -> float:
    """Log ratio of one run to the default that noise exceeds once in a thousand runs.

    ``variance`` is that of one log time of the default, with its degrees of freedom. The default's
    level is that of two runs.
    """
    return float(stats.t.ppf(0.999, freedom)) * math.sqrt(1.5 * variance)


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's correlation of two figures of the same settings; infinite figures rank last.

    0 if either has only one rank, since then nothing is known.
    """
    ranks = [stats.rankdata(figures) for figures in (one, other)]
    if any(np.ptp(found) == 0 for found in ranks if len(found)) or len(one) < 2:
        return 0.0
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
