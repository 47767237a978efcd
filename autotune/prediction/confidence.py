"""The checks of a model on programs left out, and what they say of its answers.

A model names the default where the checks do not support its setting: the predicted gain is small,
the program is far from all others, or the chance of harm is too large.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from autotune.prediction.composed import HARM
from autotune.prediction.measured_cell import Floats

SURE = math.log(1.02)
"""The smallest predicted log gain with which a setting is named, whatever the checks allow."""
WRONG = 4.0
"""Weight of a program that is slowed, relative to a missed gain of the same size."""
FALSE = SURE
"""The cost of naming a setting if the default is right, as a log ratio: the user checks it, or
changes the cluster's defaults, for nothing."""
REACH = 0.95
"""Quantile of the programs' distances to their nearest neighbour; a program farther away is
outside."""


@dataclass(frozen=True)
class Checks:
    """The results on programs that were left out of training, one row for each cell; all shapes
    (rows,).

    ``predicted`` and ``actual`` are log(T / T_default) of the setting with the best score.
    ``distance`` is the distance to the nearest of the other programs. ``slower`` is 1 if that
    setting made the program slower, else 0; ``null`` is 1 if the default is right. ``program``
    numbers the groups that were left out together.
    """

    predicted: Floats
    actual: Floats
    distance: Floats
    slower: Floats
    null: Floats
    program: Floats

    def threshold(self) -> float:
        """The predicted log gain above which naming a setting paid off in the checks; else
        infinite."""
        gains = -self.predicted
        best, best_cost = math.inf, 0.0
        for bar in sorted({SURE, *gains[gains >= SURE].tolist()}, reverse=True):
            is_named = gains >= bar
            cost = float(self.costs[is_named].sum())
            if cost < best_cost:
                best, best_cost = bar, cost
        return best

    @property
    def costs(self) -> Floats:
        """The cost of naming the best setting in each row: its log ratio, a multiple of it if it
        makes the program slower, and :data:`FALSE` if the default is right."""
        weights = np.where(self.slower > 0, WRONG, 1.0)
        costs = weights * np.where(self.null > 0, self.actual + FALSE, self.actual)
        return np.asarray(costs, dtype=np.float64)

    def residuals(self, bar: float) -> Floats:
        """actual - predicted of each program with a named setting, as the mean of its cells: two
        cells of a program are not independent. All programs are used if there are fewer than 4."""
        is_named = -self.predicted >= bar
        subset = (
            is_named
            if len(set(self.program[is_named])) >= 4
            else np.ones(len(is_named), dtype=bool)
        )
        errors, programs = (self.actual - self.predicted)[subset], self.program[subset]
        means = [errors[programs == one].mean() for one in dict.fromkeys(programs.tolist())]
        return np.array(means, dtype=np.float64)

    def reach(self) -> float:
        """The distance up to which a program counts as near."""
        return float(np.quantile(self.distance, REACH))


@dataclass(frozen=True)
class Confidence:
    """What the checks say of a predicted log ratio.

    ``bar``: the smallest predicted log gain with which a setting is named. ``reach``: the distance
    up to which a program counts as near. ``residuals``: errors of the checks, one for each program.
    """

    bar: float
    reach: float
    residuals: Floats

    def unsure(self, gain: float, far: bool) -> str:
        """Why a setting with this predicted log gain is not named; "" if it is."""
        if far:
            return (
                f"the program is farther from the training set than {REACH:.0%} of the programs on "
                "which the model was validated"
            )
        if not math.isfinite(self.bar):
            return (
                "recommending settings did not pay when the model was validated on programs "
                "left out"
            )
        if gain < self.bar:
            return (
                f"its expected gain is below {math.expm1(self.bar) * 100:.1f} %, the limit "
                "below which the model was not reliable on programs left out"
            )
        if (harm := self.harm(-gain)) > HARM:
            return f"its chance of being slower is {harm:.0%}, and at most {HARM:.0%} is allowed"
        return ""

    def centre(self, log: float) -> float:
        """The score, corrected by the mean error of the checks if they promised too much.

        The predicted gain is never raised: the models of the checks had one program fewer and were
        more cautious.
        """
        return log + (max(float(self.residuals.mean()), 0.0) if len(self.residuals) else 0.0)

    def harm(self, log: float) -> float:
        """The chance that a program with this score becomes slower (Student's t).

        Only errors towards slower are used, mirrored to the other side: a model that promises too
        little does no harm.
        """
        from scipy import stats

        n = len(self.residuals)
        if n < 2:
            return 1.0
        worse = np.maximum(self.residuals, 0.0)
        error = math.sqrt(2 * float((worse**2).mean()) * (1 + 1 / n))
        middle = self.centre(log)
        if not error:
            return float(middle >= 0)
        return float(stats.t.sf(-middle / error, n - 1))

    def interval(self, log: float) -> tuple[float, float]:
        """Prediction interval of the gain, from the errors in the checks (Student's t)."""
        from scipy import stats

        n = len(self.residuals)
        if n < 2:
            return -1.0, math.inf
        middle = self.centre(log)
        # The root mean square, not the standard deviation, so that an uncorrected bias counts.
        error = math.sqrt(float((self.residuals**2).mean()) * (1 + 1 / n))
        reach = float(stats.t.ppf(0.975, n - 1)) * error
        return math.expm1(-(middle + reach)), math.expm1(min(-(middle - reach), 50.0))
