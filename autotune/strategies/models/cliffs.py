"""Levels that are cliffs: a setting with one of them is far slower, or fails.

A run without a cliff clears all its levels at once; a run with one accuses them together. This is
noisy group testing, solved by belief propagation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.strategies.levels import Floats, Levels, Matrix


@dataclass(frozen=True)
class CliffPrior:
    """The prior, before anything is measured."""

    rate: float = 0.15
    weight: float = 8.0
    """Probability that a level is a cliff, and the weight of this prior in levels."""
    miss_rate: float = 0.02
    """Probability that a run with a cliff looks like a usual one."""
    chance: float = 0.03
    """Probability that a run which looks like a cliff was slow by chance."""
    sure: float = 0.005
    """The same for a run that failed or was much slower."""
    rounds: int = 6


class Cliffs:
    """The probable cliffs among the levels, given ``codes`` (settings, parameters).

    ``fell`` marks the runs that look like a cliff, ``sure`` the clear ones among them. ``rate`` is
    the learned share of cliffs among the levels, ``log_clear`` (choices,) the log probability that
    a choice is not one.
    """

    def __init__(
        self,
        levels: Levels,
        prior: CliffPrior,
        codes: Matrix,
        fell: NDArray[np.bool_],
        sure: NDArray[np.bool_],
    ) -> None:
        from scipy.special import expit

        self._levels = levels
        inside = levels.one_hot(codes).astype(np.bool_) & levels.free
        is_tried = inside.any(axis=0)
        clear_odds = inside[~fell].sum(axis=0) * math.log(prior.miss_rate)
        suspects = inside[fell]
        own_chance = np.where(sure[fell], prior.sure, prior.chance)[:, None]
        messages = np.zeros(suspects.shape)
        self.rate, odds = prior.rate, np.zeros(levels.total)
        for turn in range(prior.rounds):
            odds = math.log(self.rate / (1 - self.rate)) + clear_odds + messages.sum(axis=0)
            # The other runs' evidence on each level, then how well the other levels explain the
            # run.
            logs = np.where(suspects, _log_clear(odds - messages), 0.0)
            others_clear = np.exp(logs.sum(axis=1, keepdims=True) - logs)
            fresh = np.where(suspects, -np.log1p(-(1 - own_chance) * others_clear), 0.0)
            messages = fresh if turn == 0 else (messages + fresh) / 2
            odds = math.log(self.rate / (1 - self.rate)) + clear_odds + messages.sum(axis=0)
            cliff_count = float(expit(odds[is_tried]).sum())
            self.rate = (prior.rate * prior.weight + cliff_count) / (
                prior.weight + float(is_tried.sum())
            )
        self.log_clear: Floats = np.where(levels.free, _log_clear(odds), 0.0)

    def clear(self, codes: Matrix) -> Floats:
        """Log probability that no level of a setting is a cliff, shape (settings,)."""
        return np.asarray(self.log_clear[self._levels.places(codes)].sum(axis=1))


def _log_clear(odds: Floats) -> Floats:
    """Log of 1 - p, for the log odds of p."""
    return np.asarray(-np.logaddexp(0.0, odds))
