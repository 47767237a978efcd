"""Two-way interactions: pairs of parameters whose joint effect is not the sum of single effects.

The thesis left them out as too expensive (Pellegrini 1.10.2).  Computed from the means of the
combinations, a pair costs microseconds.  The unit of error is the setting (its mean over the
cells), as in ``mixed``: otherwise the effect of a setting's other parameters would look like an
interaction.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import PlainSerializer

from autotune.anova.factors import Correction, corrected_ps
from autotune.anova.mixed import per_setting
from autotune.anova.oneway import Floats, Ints, Values
from runner.types import finite

MIN_COMBINATION = 5
"""A combination of levels with fewer observations is left out."""


@dataclass(frozen=True)
class Interaction:
    """The interaction of two parameters.

    ``best``: the combination with the highest mean (levels of ``first`` and ``second``).
    ``surplus``: its mean less the sum of the two main effects.  ``eta2``: the share of the variance
    that the interaction explains.
    """

    first: str
    second: str
    f: Annotated[float, PlainSerializer(finite, return_type=float | None)]
    p: float
    p_corrected: float
    eta2: float
    best: tuple[str, str]
    surplus: float
    significant: bool


def interactions(
    values: Values,
    names: Sequence[str],
    *,
    level: float = 0.999,
    correction: Correction = "holm",
    min_combination: int = MIN_COMBINATION,
) -> list[Interaction]:
    """The interaction of every pair of ``names`` with enough data, the smallest p value first."""
    first_rows, y = per_setting(values)
    total = float(y @ y)
    table = values.table
    pairs = []
    for first, second in itertools.combinations(names, 2):
        pair = _pair(
            table.codes(first)[first_rows],
            table.codes(second)[first_rows],
            y,
            (len(table.levels[first]), len(table.levels[second])),
            min_combination,
        )
        if pair is not None:
            pairs.append((first, second, pair))
    final_ps = corrected_ps([pair.p for _, _, pair in pairs], correction)
    rows = []
    for (first, second, pair), p in zip(pairs, final_ps, strict=True):
        texts = list(table.levels[first]), list(table.levels[second])
        best = texts[0][pair.best[0]], texts[1][pair.best[1]]
        eta2 = pair.explained_ss / total if total else 0.0
        rows.append(
            Interaction(first, second, pair.f, pair.p, p, eta2, best, pair.surplus, p < 1 - level)
        )
    return sorted(rows, key=lambda row: (row.p, -row.eta2))


@dataclass(frozen=True)
class _Pair:
    f: float
    p: float
    explained_ss: float
    best: tuple[int, int]
    surplus: float


def _pair(a: Ints, b: Ints, y: Floats, shape: tuple[int, int], least: int) -> _Pair | None:
    """The F test of the interaction given both main effects; None if it cannot be tested."""
    from scipy import stats

    joint = a * shape[1] + b
    size = shape[0] * shape[1]
    counts = np.bincount(joint, minlength=size)
    cells = np.flatnonzero(counts >= least)
    if cells.size < 4:
        return None
    keep = (counts >= least)[joint]
    n = counts[cells].astype(float)
    means = np.bincount(joint, weights=y, minlength=size)[cells] / n
    design = _dummies(cells, shape)
    root = np.sqrt(n)
    beta, _, rank, _ = np.linalg.lstsq(design * root[:, None], means * root, rcond=None)
    df, df_error = int(cells.size - rank), int(keep.sum()) - cells.size
    if df < 1 or df_error < 1:
        return None
    additive = design @ beta
    explained_ss = float((n * (means - additive) ** 2).sum())
    rest = float(y[keep] @ y[keep]) - float((n * means**2).sum())
    best = int(np.argmax(means))
    where = int(cells[best]) // shape[1], int(cells[best]) % shape[1]
    surplus = float(means[best] - additive[best])
    if rest <= 1e-12 * max(float(y @ y), 1e-300):
        significant = explained_ss > 0
        return _Pair(math.inf if significant else 0.0, 0.0 if significant else 1.0, explained_ss,
                     where, surplus)  # fmt: skip
    f = explained_ss / df / (rest / df_error)
    return _Pair(f, float(stats.f.sf(f, df, df_error)), explained_ss, where, surplus)


def _dummies(cells: Ints, shape: tuple[int, int]) -> Floats:
    design = np.zeros((cells.size, shape[0] + shape[1]))
    rows = np.arange(cells.size)
    design[rows, cells // shape[1]] = 1.0
    design[rows, shape[0] + cells % shape[1]] = 1.0
    return design
