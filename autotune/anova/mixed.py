"""The mixed model: cells are blocks, and settings are a random effect over the cells.

The same list of settings runs in every cell, so the rows of one setting are not independent: the
effect of its other parameters is in all of them. A level is therefore judged against the scatter of
settings, not of rows. Otherwise the rate of false positives would exceed its nominal value.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from autotune.anova.oneway import Floats, Ints, Values, rank_within


@dataclass(frozen=True)
class MixedTest:
    """The F test of one factor.  ``f`` is relative to the scatter of settings, with ``df_error``
    degrees of freedom.  ``means`` and ``errors`` (standard errors): shape (levels,), adjusted for
    the other factors; NaN for a level that was not judged."""

    f: float
    p: float
    df: int
    df_error: int
    means: Floats
    errors: Floats


@dataclass(frozen=True)
class Shares:
    """Variance of the response within cells: between settings, and between rows of a setting."""

    setting: float
    row: float

    @property
    def of_setting(self) -> float:
        """Share of the variance that belongs to the settings, the same in every cell; 0 to 1."""
        total = self.setting + self.row
        return self.setting / total if total > 0 else 0.0


class Units:
    """The settings of a table as units: mean response over their cells, weights, and levels."""

    def __init__(self, values: Values) -> None:
        table = values.table
        self.first, self.means = per_setting(values)
        counts = np.bincount(np.unique(table.units, return_inverse=True)[1]).astype(float)
        shares = variance_shares(values)
        spread = shares.setting + shares.row / counts
        # Weights matter if settings were run on different numbers of cells.
        self.root = np.sqrt(float(np.mean(spread)) / spread) if shares.row else np.sqrt(counts)
        self.middle = float(values.y.mean())
        self._table = table
        self._cells = self._cell_columns()
        self._dummies: dict[str, tuple[Floats, NDArray[np.bool_]]] = {}
        self._bases: dict[tuple[str, ...], Floats] = {}

    def _cell_columns(self) -> Floats:
        """One weighted column for each cell, if settings belong to one cell each; else none.

        Settings of all cells have the means of their cells taken out. Where each cell has settings
        of its own, the mean of a cell also holds the effects of its settings.
        """
        cells = self._table.blocks[self.first]
        count = len(self._table.cells) if self._table.joined is not None else 0
        columns = (cells[:, None] == np.arange(count)) * self.root[:, None]
        return np.asarray(columns, dtype=np.float64)

    def dummies(self, name: str, min_level: int) -> tuple[Floats, NDArray[np.bool_]]:
        """One weighted column for each judged level, and flags of the judged levels.

        A level with too few rows belongs to the intercept, with 0 in every column.
        """
        if name in self._dummies:
            return self._dummies[name]
        levels = len(self._table.levels[name])
        is_judged = np.bincount(self._table.codes(name), minlength=levels) >= min_level
        codes = self._table.codes(name)[self.first]
        columns = (codes[:, None] == np.arange(levels)) * self.root[:, None]
        self._dummies[name] = np.asarray(columns * is_judged, dtype=np.float64), is_judged
        return self._dummies[name]

    def _basis(self, others: Sequence[str], keep: NDArray[np.bool_], min_level: int) -> Floats:
        """Orthonormal basis of intercept and ``others``; shared by all factors that keep all
        rows."""
        key = tuple(others)
        if not keep.all() or key not in self._bases:
            columns = [
                self.root[:, None],
                self._cells,
                *(self.dummies(o, min_level)[0] for o in others),
            ]
            basis = _orthonormal(np.concatenate(columns, axis=1)[keep])
            if not keep.all():
                return basis
            self._bases[key] = basis
        return self._bases[key]

    def test(self, name: str, others: Sequence[str], min_level: int) -> MixedTest:
        """Test if the levels of ``name`` differ, given the effects of ``others``."""
        own, is_judged = self.dummies(name, min_level)
        keep = np.asarray(own.any(axis=1), dtype=np.bool_)
        if is_judged.sum() < 2 or not keep.any():
            nothing = np.full(len(is_judged), np.nan)
            return MixedTest(math.nan, 1.0, 0, 0, nothing, nothing)
        basis = self._basis(others, keep, min_level)
        y = (self.means * self.root)[keep]
        y = y - basis @ (basis.T @ y)
        own = own[keep] - basis @ (basis.T @ own[keep])
        gram = own.T @ own
        inverse: Floats = np.asarray(np.linalg.pinv(gram, hermitian=True, rcond=1e-9))
        effects: Floats = np.asarray(inverse @ (own.T @ y))
        df = int(np.linalg.matrix_rank(gram, hermitian=True, tol=1e-8 * max(len(y), 1)))
        df_error = len(y) - basis.shape[1] - df
        explained_ss = float(effects @ (own.T @ y))
        rest = max(float(y @ y) - explained_ss, 0.0)
        return self._result(explained_ss, rest, df, df_error, effects, inverse, is_judged)

    def _result(
        self,
        explained_ss: float,
        rest: float,
        df: int,
        df_error: int,
        effects: Floats,
        inverse: Floats,
        is_judged: NDArray[np.bool_],
    ) -> MixedTest:
        from scipy import stats

        nothing = np.full(len(is_judged), np.nan)
        if df < 1 or df_error < 1:
            return MixedTest(math.nan, 1.0, df, df_error, nothing, nothing)
        if rest <= 1e-14 * max(explained_ss, 1e-300):
            f, p = (math.inf, 0.0) if explained_ss > 0 else (0.0, 1.0)
        else:
            f = max(explained_ss, 0.0) / df / (rest / df_error)
            p = float(stats.f.sf(f, df, df_error))
        errors = np.sqrt(np.maximum(np.diag(inverse), 0.0) * rest / df_error)
        means = np.where(is_judged, effects + self.middle, np.nan)
        return MixedTest(f, p, df, df_error, means, np.where(is_judged, errors, np.nan))


def _orthonormal(columns: Floats) -> Floats:
    """Orthonormal columns that span the same space."""
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    keep = sizes > 1e-9 * max(float(sizes[0]), 1e-300)
    return np.asarray(left[:, keep], dtype=np.float64)


def mixed_tests(
    values: Values, names: Sequence[str], alpha: float, min_level: int
) -> dict[str, MixedTest]:
    """Test every factor against the scatter of settings, given the factors that certainly matter.

    The effect of a strong factor is scatter for all others until the model has it. So factors are
    added one by one while the next one is certain (Bonferroni over those left). If every setting
    runs in every cell, these are the exact tests of the mixed model.
    """
    units = Units(values)
    model_names: list[str] = []
    while True:
        left = [name for name in names if name not in model_names]
        tests = {name: units.test(name, model_names, min_level) for name in left}
        if not left:
            break
        best = min(left, key=lambda name: (tests[name].p, -_finite_f(tests[name])))
        if tests[best].p * len(left) >= alpha or not math.isfinite(_finite_f(tests[best])):
            break
        model_names.append(best)
    for name in model_names:
        tests[name] = units.test(name, [o for o in model_names if o != name], min_level)
    return tests


def _finite_f(test: MixedTest) -> float:
    """F, or -infinity if the test is impossible: that is no evidence."""
    if math.isnan(test.f):
        return -math.inf
    return min(test.f, 1e300)


def with_ranks(values: Values) -> Values:
    """The same rows with ranks within their cell as the response."""
    return replace(values, y=rank_within(values.y, values.table.blocks))


def subtract_cell_means(values: Values) -> Floats:
    """The response less the mean of its cell; shape (rows,)."""
    blocks = values.table.blocks
    sums = np.bincount(blocks, weights=values.y)
    return np.asarray(
        values.y - (sums / np.maximum(np.bincount(blocks), 1))[blocks], dtype=np.float64
    )


def per_setting(values: Values) -> tuple[Ints, Floats]:
    """The first row of every setting, and the mean of its centred response over the cells; shape
    (settings,) each."""
    _, first, of_row = np.unique(values.table.units, return_index=True, return_inverse=True)
    means = np.bincount(of_row, weights=subtract_cell_means(values)) / np.bincount(of_row)
    return first, means


def variance_shares(values: Values) -> Shares:
    """Moment estimates of the two variance components (one-way random effects)."""
    y = subtract_cell_means(values)
    of_row = np.unique(values.table.units, return_inverse=True)[1]
    counts = np.bincount(of_row).astype(float)
    n, groups = float(counts.sum()), len(counts)
    if groups < 2 or n <= groups:
        return Shares(float(np.var(y)), 0.0)
    means = np.bincount(of_row, weights=y) / counts
    within = float(((y - means[of_row]) ** 2).sum()) / (n - groups)
    between = float((counts * (means - y.mean()) ** 2).sum()) / (groups - 1)
    typical = (n - float((counts**2).sum()) / n) / (groups - 1)
    return Shares(max((between - within) / typical, 0.0), within)


@dataclass(frozen=True)
class Fit:
    """Joint fit by restricted maximum likelihood; effects are relative to a factor's first
    level."""

    effects: dict[str, float]
    errors: dict[str, float]
    setting_variance: float
    row_variance: float


def fit(values: Values, names: list[str]) -> Fit:
    """Fit all ``names`` together in one mixed model (statsmodels): the effect of a level given the
    others.

    The keys of the effects are "parameter=level".  This fit is slow, so the tests of single factors
    do not use it.
    """
    import pandas as pd

    # These imports take a second, and only this function needs them.
    from statsmodels.regression.linear_model import OLS
    from statsmodels.regression.mixed_linear_model import MixedLM

    table = values.table
    columns = {}
    for name in names:
        codes = table.codes(name)
        present = [text for i, text in enumerate(table.levels[name]) if (codes == i).any()]
        for text in present[1:]:
            at = list(table.levels[name]).index(text)
            columns[f"{name}={text}"] = (codes == at).astype(float)
    design = pd.DataFrame({"mean": np.ones(len(values.y)), **columns})
    y = subtract_cell_means(values)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = MixedLM(y, design, groups=table.units).fit(reml=True, method="lbfgs")
        variance, scale = float(result.cov_re.iloc[0, 0]), float(result.scale)
        means, errors = result.fe_params, result.bse_fe
    except np.linalg.LinAlgError:
        # The variance of the settings is 0 given the factors: the model is then least squares.
        plain = OLS(y, design).fit()
        variance, scale, means, errors = 0.0, float(plain.scale), plain.params, plain.bse
    return Fit(
        {name: float(means[name]) for name in columns},
        {name: float(errors[name]) for name in columns},
        variance,
        scale,
    )
