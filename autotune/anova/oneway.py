"""One-way analysis of variance of one factor, with or without blocks, and the response it explains.

Everything is computed from the table of counts (level x block), so 20,000 rows take milliseconds.

:func:`respond` computes the response: the gain, or the log of the time, relative to the default.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from autotune.anova.table import RunTable
from autotune.errors import WorkError

Floats = NDArray[np.float64]
Ints = NDArray[np.int_]

MIN_LEVEL = 20
"""A level with fewer observations is not judged."""


@dataclass(frozen=True)
class OneWay:
    """The F test: ``f`` with ``df`` and ``df_error`` degrees of freedom, and its p value ``p``.

    ``eta2`` is the share of the variance (within blocks) that the factor explains; ``omega2`` is
    the same less the share that chance alone would explain.  ``means`` and ``errors`` (standard
    errors) have shape (levels,), adjusted for blocks; NaN for a level that was not judged.
    ``counts``: rows of each level, of all levels.
    """

    f: float
    p: float
    df: int
    df_error: int
    eta2: float
    omega2: float
    means: Floats
    errors: Floats
    counts: Ints

    @property
    def testable(self) -> bool:
        return self.df >= 1 and self.df_error >= 1


def one_way(
    codes: Ints,
    y: Floats,
    levels: int,
    blocks: Ints | None = None,
    *,
    min_level: int = MIN_LEVEL,
) -> OneWay:
    """Test one factor.  ``codes`` (the level from 0), ``y`` and ``blocks`` have shape (rows,).

    Levels with fewer than ``min_level`` rows are left out.
    """
    counts = np.bincount(codes, minlength=levels)
    is_judged = counts >= min_level
    keep = is_judged[codes]
    groups = np.zeros_like(codes) if blocks is None else blocks
    codes, y, groups = codes[keep], y[keep], groups[keep]
    solution = _solve(codes, y, groups, levels)
    df_error = int(y.size) - solution.blocks - solution.df
    if solution.df < 1 or df_error < 1:
        return _empty_result(levels, counts, solution.df, df_error)
    # If all values are equal, rounding leaves a tiny sum of squares.
    nothing = solution.total <= 1e-20 * max(float(y @ y), 1e-300)
    explained_ss = 0.0 if nothing else min(solution.explained_ss, solution.total)
    rest = max(solution.total - explained_ss, 0.0)
    f, p = _test(explained_ss, rest, solution.df, df_error)
    noise = rest / df_error
    total = solution.total if not nothing else 1.0
    omega2 = (explained_ss - solution.df * noise) / (total + noise) if total + noise > 0 else 0.0
    means = np.where(is_judged, solution.means, np.nan)
    with np.errstate(divide="ignore"):
        errors = np.where(is_judged, np.sqrt(noise / np.maximum(counts, 1)), np.nan)
    eta2 = explained_ss / total
    return OneWay(f, p, solution.df, df_error, eta2, max(omega2, 0.0), means, errors, counts)


def rank_within(y: Floats, blocks: Ints) -> Floats:
    """Mid-ranks within every block, scaled to 0..1 so that blocks of any size can be compared."""
    from scipy import stats

    ranks = np.empty(y.size)
    for block in np.unique(blocks):
        inside = blocks == block
        ranks[inside] = stats.rankdata(y[inside]) / (float(inside.sum()) + 1)
    return ranks


@dataclass(frozen=True)
class _LeastSquares:
    explained_ss: float
    total: float
    """Sum of squares within the blocks."""
    means: Floats
    df: int
    blocks: int


def _solve(codes: Ints, y: Floats, groups: Ints, levels: int) -> _LeastSquares:
    """Least squares of level effects beside block effects (the reduced normal equations)."""
    _, groups = np.unique(groups, return_inverse=True)
    count = int(groups.max()) + 1 if groups.size else 0
    table = np.zeros((levels, count))
    np.add.at(table, (codes, groups), 1.0)
    per_level, per_block = table.sum(axis=1), table.sum(axis=0)
    sums = np.bincount(codes, weights=y, minlength=levels)
    block_sums = np.bincount(groups, weights=y, minlength=count)
    share = table / np.maximum(per_block, 1.0)
    normal_matrix = np.diag(per_level) - share @ table.T
    right = sums - share @ block_sums
    effects = np.linalg.pinv(normal_matrix, hermitian=True) @ right
    rank = int(np.linalg.matrix_rank(normal_matrix, hermitian=True)) if normal_matrix.size else 0
    middle = y.mean() if y.size else math.nan
    shift = float(per_level @ effects) / max(float(per_level.sum()), 1.0)
    residuals = y - (block_sums / np.maximum(per_block, 1.0))[groups]
    return _LeastSquares(
        float(effects @ right), float(residuals @ residuals), effects - shift + middle, rank, count
    )


def _test(explained_ss: float, rest: float, df: int, df_error: int) -> tuple[float, float]:
    from scipy import stats

    if explained_ss <= 0:
        return 0.0, 1.0
    if rest <= 0:
        return math.inf, 0.0
    f = (explained_ss / df) / (rest / df_error)
    return f, float(stats.f.sf(f, df, df_error))


def _empty_result(levels: int, counts: Ints, df: int, df_error: int) -> OneWay:
    nothing = np.full(levels, np.nan)
    return OneWay(math.nan, 1.0, max(df, 0), max(df_error, 0), 0.0, 0.0, nothing, nothing, counts)


Response = Literal["gain", "log"]
RESPONSES: tuple[Response, ...] = ("gain", "log")
WINSOR = 0.025
"""Share of the rows of a cell at either end whose log ratio is set to that end's limit."""


@dataclass(frozen=True)
class Values:
    """``y``: the response of every row of ``table``, larger is faster.  ``left_out``: keys of null
    cells, which have no response."""

    table: RunTable
    y: NDArray[np.float64]
    kind: Response
    left_out: tuple[str, ...] = ()


def respond(table: RunTable, kind: Response) -> Values:
    """The response of every row.

    ``gain``: (T_default / T - 1) / gain of the cell's OPUB, so that every program has the same
    weight (Pellegrini 1.10.2).  Null cells have no gain to divide by and are left out.  ``log``:
    -log(T / T_default), winsorised within its cell, on all cells; a failed setting counts as the
    slowest.  Raises WorkError if no cell is left for ``gain``.
    """
    return _gain(table) if kind == "gain" else _log(table)


def _gain(table: RunTable) -> Values:
    null = tuple(key for key in table.cells if table.best[key].null)
    rest_table = table.where(lambda place: place.key not in null)
    if not rest_table.cells:
        raise WorkError(
            f"{table.origin}: in none of its {len(table.cells)} cells does any setting "
            "beat the default beyond noise, so there is no gain to analyse; --response log "
            "uses all cells",
            code="dataset.no_gain",
        )
    scale = (
        rest_table.rows["cell"]
        .map({key: rest_table.best[key].gain for key in rest_table.cells})
        .to_numpy(float)
    )
    # A failed setting has an infinite ratio, so its gain is -1, the smallest possible.
    gain = 1.0 / rest_table.rows["ratio"].to_numpy(dtype=float) - 1.0
    return Values(rest_table, gain / scale, "gain", null)


def _log(table: RunTable) -> Values:
    ratio = table.rows["ratio"].to_numpy(dtype=float)
    y = np.empty(len(ratio))
    for number in range(len(table.cells)):
        inside = table.blocks == number
        y[inside] = winsorise(-np.log(ratio[inside]))
    return Values(table, y, "log")


def winsorise(logs: NDArray[np.float64], share: float = WINSOR) -> NDArray[np.float64]:
    """Limit values to the ``share`` and 1 - ``share`` quantiles of the finite ones."""
    finite = logs[np.isfinite(logs)]
    if not finite.size:
        return np.zeros_like(logs)
    low, high = np.quantile(finite, [share, 1 - share])
    return np.clip(logs, low, high)
