"""Means of levels as drawings (Pellegrini, Figure 4.9)."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.anova.factors import Factor
from autotune.anova.response import Response
from autotune.report.figures import Mark, dots

AXES: dict[Response, str] = {
    "gain": "mean gain over the default, as a share of the best known gain (95 % interval)",
    "log": "mean of log(T default / T), 95 % interval",
}


def level_means(factors: Sequence[Factor], response: Response) -> list[str]:
    """One drawing per significant factor, the strongest first."""
    shown = sorted((f for f in factors if f.significant), key=lambda f: -f.omega2)
    return [drawn(factor, response) for factor in shown]


def drawn(factor: Factor, response: Response) -> str:
    """The mean of each level of one factor with its interval; the best level is marked."""
    marks = [
        Mark(m.level, m.mean, m.lo, m.hi, f"n = {m.n}", m.level == factor.best)
        for m in factor.levels
    ]
    return dots(factor.name, AXES[response], marks)
