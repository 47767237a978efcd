"""The race: one run for every setting, further runs only if they can change the choice.

The data are ratios T / T_default of the same neighbourhood (``blocks.DefaultLevel``); below 1 is
faster. A run that failed, or that the time limit ended, is ``math.inf``: its setting is excluded.

The best of many noisy figures is too good by chance. So the estimate of a setting is its figure
shrunk towards the default (empirical Bayes); the prior is fitted to the measured settings
themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from autotune.stats.comparison import MIN_GAIN
from autotune.stats.exact import Floats, Values
from autotune.stats.uncertainty import mad_spread

MAX_RUNS = 6
"""Largest number of runs of a setting in the race; further runs belong to the confirmation."""

_FIT_STEPS = 15
_CLIFF = math.log(1.35)  # settings slower than this are left out of the fit of the size of gains
_LEAST_NOISE = 1e-3
_HEAVY = 2.0  # factor on the variance: run times have heavier tails than their robust sd shows
_WIDE = (0.01, 0.30)  # bounds of the spread of real effects, in log ratios


@dataclass(frozen=True)
class Posterior:
    """Posterior of each setting, in log ratios to the default; arrays of shape (settings,).

    Negative means faster.
    """

    mean: Floats
    """Expected log ratio after shrinkage; ``inf`` for an excluded setting."""
    sd: Floats
    gain_chance: Floats
    """Probability (0..1) of a gain of at least ``min_gain``."""

    @property
    def gain(self) -> Floats:
        """Expected gain T_default / T - 1; -1 for an excluded setting."""
        return np.asarray(np.expm1(-self.mean), dtype=np.float64)


def noise_of(default_ratios: Values) -> float:
    """Robust standard deviation of the log ratio of one run, from the default's own ratios."""
    logs = np.log(np.asarray(default_ratios, dtype=np.float64))
    return max(mad_spread(logs), _LEAST_NOISE)


def posterior(
    candidates: Sequence[Sequence[float]], noise: float, *, min_gain: float = MIN_GAIN
) -> Posterior:
    """The posterior of each setting, given its ratios (one list per setting, may be empty).

    ``noise``: standard deviation of one run's log ratio (:func:`noise_of`). Model: a setting does
    nothing, or has an effect of a typical size. The share of settings with an effect and the size
    are fitted to all settings.
    """
    from scipy import special

    centre, runs = _summary(candidates)
    variance = _HEAVY * noise**2 / np.maximum(runs, 1) * np.where(runs >= 3, 1.35, 1.0)
    usable = np.isfinite(centre) & (runs > 0)
    share, size = _fit(centre[usable & (centre < _CLIFF)], variance[usable & (centre < _CLIFF)])
    x = np.where(usable, centre, 0.0)
    odds = _effect_chance(x, variance, share, size)
    shrink = size**2 / (size**2 + variance)
    mean, inner = shrink * x, shrink * variance
    chance = odds * special.ndtr((-math.log1p(min_gain) - mean) / np.sqrt(inner))
    spread = np.sqrt(odds * (inner + mean**2) - (odds * mean) ** 2)
    out = (runs > 0) & ~np.isfinite(centre)
    never = runs == 0
    return Posterior(
        mean=np.where(out, np.inf, np.where(never, 0.0, odds * mean)),
        sd=np.where(out, 0.0, np.where(never, size, spread)),
        gain_chance=np.where(out, 0.0, chance),
    )


def next_run(
    candidates: Sequence[Sequence[float]],
    noise: float,
    *,
    min_gain: float = MIN_GAIN,
    doubt: float = 0.02,
) -> int | None:
    """Index of the setting whose next run decides most; None if no run would change the choice.

    Settings without a run come first. Then the run goes to the leader (the default, if no setting
    is expected to be faster) or to its rival, the setting most likely to be faster by half of
    ``min_gain``: to the less well known of the two. The race ends if that chance is below
    ``doubt``, or if both have :data:`MAX_RUNS` runs.
    """
    counts = np.array([len(c) for c in candidates])
    if counts.size == 0:
        return None
    if (counts == 0).any():
        return int(np.argmin(counts))
    posteriors = posterior(candidates, noise, min_gain=min_gain)
    leader = int(np.argmin(posteriors.mean))
    best, best_sd = (
        (posteriors.mean[leader], posteriors.sd[leader])
        if posteriors.mean[leader] < 0
        else (0.0, 0.0)
    )
    chance = _beats(posteriors, float(best), float(best_sd), math.log1p(min_gain) / 2)
    chance[leader] = posteriors.gain_chance[leader] if best_sd == 0 else 0.0
    chance[counts >= MAX_RUNS] = 0.0
    rival = int(np.argmax(chance))
    if chance[rival] < doubt:
        return None
    if best_sd > posteriors.sd[rival] and counts[leader] < MAX_RUNS:
        return leader
    return rival


def finalists(
    candidates: Sequence[Sequence[float]],
    noise: float,
    *,
    most: int = 3,
    min_gain: float = MIN_GAIN,
    doubt: float = 0.05,
) -> list[int]:
    """Indices of the settings to confirm, most promising first, at most ``most``.

    A setting needs a chance of at least ``doubt`` of a gain of ``min_gain``. A second or third
    setting also needs a chance of 15 % of being faster than the first, because each costs runs and
    a share of alpha. The list is empty if no gain is likely enough: keep the default.
    """
    if not candidates:
        return []
    posteriors = posterior(candidates, noise, min_gain=min_gain)
    counts = np.array([len(c) for c in candidates])
    order = [int(i) for i in np.argsort(posteriors.mean, kind="stable")]
    able = [i for i in order if counts[i] and posteriors.gain_chance[i] >= doubt]
    if not able:
        return []
    first = able[0]
    rivals = _beats(posteriors, float(posteriors.mean[first]), float(posteriors.sd[first]), 0.0)
    return [first, *(i for i in able[1:] if rivals[i] >= 0.15)][:most]


def time_limit(
    default_s: float, best_ratio: float = 1.0, *, factor: float = 3.0, overhead_s: float = 0.0
) -> float:
    """Seconds of wall time after which a search run is ended as clearly slower.

    The limit is ``factor`` times the incumbent, whose ratio to the default is ``best_ratio`` (at
    most 1, since the default is always a choice). ``default_s``: the default's figure;
    ``overhead_s``: wall time of the default outside it (start-up), which a setting need not
    shorten.
    """
    return overhead_s + factor * min(best_ratio, 1.0) * default_s


def _summary(candidates: Sequence[Sequence[float]]) -> tuple[Floats, Floats]:
    """Median log ratio (``inf`` if any run is) and number of runs, each of shape (settings,)."""
    centre = np.zeros(len(candidates))
    for i, ratios in enumerate(candidates):
        if ratios:
            centre[i] = math.inf if math.inf in ratios else math.log(median(ratios))
    return centre, np.array([len(c) for c in candidates], dtype=np.float64)


def _fit(x: Floats, variance: Floats) -> tuple[float, float]:
    """Share of settings with an effect, and size (sd) of their effects, by EM."""
    share, size = 0.2, 0.05
    if x.size < 2:
        return share, size
    for _ in range(_FIT_STEPS):
        odds = _effect_chance(x, variance, share, size)
        shrink = size**2 / (size**2 + variance)
        second = shrink * variance + (shrink * x) ** 2
        # One pseudo-setting of each kind keeps a few settings from deciding the fit alone.
        share = float((odds.sum() + 0.2) / (x.size + 1))
        size = math.sqrt(float(((odds * second).sum() + 0.2 * 0.05**2) / (odds.sum() + 0.2)))
        size = min(max(size, _WIDE[0]), _WIDE[1])
    return share, size


def _effect_chance(x: Floats, variance: Floats, share: float, size: float) -> Floats:
    """Posterior probability that a setting with the figure ``x`` has an effect."""
    from scipy import special

    wide = size**2 + variance
    log_odds = (
        math.log(share / (1 - share))
        + 0.5 * np.log(variance / wide)
        + 0.5 * x**2 * (1 / variance - 1 / wide)
    )
    return np.asarray(special.expit(log_odds), dtype=np.float64)


def _beats(posteriors: Posterior, best: float, best_sd: float, margin: float) -> Floats:
    """Probability that each setting is faster than the best by ``margin`` in log ratio."""
    from scipy import special

    difference_sd = np.sqrt(posteriors.sd**2 + best_sd**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (best - margin - posteriors.mean) / difference_sd
    return np.asarray(
        np.where(np.isfinite(posteriors.mean) & (difference_sd > 0), special.ndtr(z), 0.0)
    )
