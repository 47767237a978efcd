"""Shrinkage: the effect of every setting on every cell, corrected for the luck of single runs.

One run says little, and the fastest of many runs is mostly lucky.  So a measured effect is shrunk
towards the sum of the effects of the setting's parameters (a ridge regression for each cell).  The
weight follows from the noise of the runs and the errors of the model.  A setting that was not
measured on a cell gets the prediction of the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from autotune.anova.oneway import winsorise
from autotune.anova.table import RunTable
from autotune.space import DEFAULT, Setting

Floats = NDArray[np.float64]
_ALPHAS = tuple(10.0**power for power in range(-2, 4))
_LEAST_NOISE = 1e-3


@dataclass(frozen=True)
class ShrunkEffect:
    """log(T / T_default) of one setting on one cell, its standard error, and True if it was run."""

    log: float
    error: float
    measured: bool

    @property
    def gain(self) -> float:
        return math.expm1(-self.log)


class SettingEffects:
    """The shrunk effects of settings on the cells of a table; see :meth:`value`."""

    def __init__(
        self, table: RunTable, cells: Mapping[str, _Cell] | None = None, total: int = 0
    ) -> None:
        self.table = table
        self._cells = cells or {
            key: _Cell(table, key, number) for number, key in enumerate(table.cells)
        }
        self.total = total or max(len(table.cells), 1)

    def on(self, table: RunTable) -> SettingEffects:
        """The same effects for a part of the table: a cell's do not depend on other cells."""
        return SettingEffects(table, {key: self._cells[key] for key in table.cells}, self.total)

    @cached_property
    def everywhere(self) -> list[Setting]:
        """Settings that were run on every cell, in a fixed order; the default is not listed."""
        keys_of_cells = [set(cell.index) for cell in self._cells.values()]
        common = set.intersection(*keys_of_cells) - {DEFAULT.key} if keys_of_cells else set()
        return [self.table.settings[key] for key in sorted(common)]

    def value(self, cell: str, setting: Setting) -> ShrunkEffect:
        """The effect of a setting on a cell; 0 for the default by definition."""
        if setting == DEFAULT:
            return ShrunkEffect(0.0, 0.0, True)
        return self._cells[cell].value(setting)

    def raw_gain(self, cell: str, setting: Setting) -> float:
        """Measured T_default / T - 1, including luck; the setting must have been run there."""
        return self._cells[cell].raw_gain(setting)

    def share(self, cell: str, setting: Setting) -> float | None:
        """gain / gain of OPUB, at most 1; None on a null cell.

        A setting that looks better than OPUB counts as equal to it.
        """
        best = self.table.best[cell]
        return None if best.null else min(self.value(cell, setting).gain / best.gain, 1.0)

    def mean_share(self, setting: Setting, cells: Sequence[str]) -> float:
        """Mean share over programs (each the mean over its cells with a possible gain)."""
        by_app: dict[str, list[float]] = {}
        for cell in cells:
            share = self.share(cell, setting)
            if share is not None:
                by_app.setdefault(self.table.cells[cell].app, []).append(share)
        means = [sum(shares) / len(shares) for shares in by_app.values()]
        return sum(means) / len(means) if means else 0.0

    def merit(self, setting: Setting, cells: Sequence[str]) -> tuple[float, float]:
        """Key to choose by: the mean share, then the mean log gain, which has no upper bound."""
        logs = [self.value(cell, setting).log for cell in cells]
        return self.mean_share(setting, cells), -sum(logs) / max(len(logs), 1)

    def slower(
        self, setting: Setting, cells: Sequence[str], sigmas: float | None = None
    ) -> list[str]:
        """Cells on which the setting is slower than the default by more than the noise.

        The limit is ``sigmas`` standard errors. None: a limit such that the chance of any wrong
        cell is 5 % over all cells of all programs.
        """
        from scipy import stats

        if sigmas is None:
            sigmas = float(stats.norm.isf(0.05 / self.total))
        slower_cells = []
        for cell in cells:
            guess = self.value(cell, setting)
            # A loss below one per cent is not visible in any comparison.
            if guess.log > max(sigmas * guess.error, 0.01):
                slower_cells.append(cell)
        return slower_cells

    def certainty(self, pairs: Sequence[tuple[str, Setting]]) -> float:
        """Mean log gain over pairs of a cell and a setting, in standard errors; 0 without pairs."""
        guesses = [self.value(cell, s) for cell, s in pairs if s != DEFAULT]
        error = math.sqrt(sum(guess.error**2 for guess in guesses))
        return -sum(guess.log for guess in guesses) / error if error > 0 else 0.0


class _Cell:
    def __init__(self, table: RunTable, key: str, number: int) -> None:
        from sklearn.linear_model import RidgeCV  # a second to import, and rarely needed

        indices = np.flatnonzero(table.blocks == number)
        rows = table.rows.iloc[indices]
        row_of = {str(k): i for i, k in enumerate(rows["key"])}
        same: Mapping[str, str] = table.same.get(key, {})
        self.index = row_of | {k: row_of[v] for k, v in same.items() if v in row_of}
        self._table = table
        self._logs = np.log(rows["ratio"].to_numpy(dtype=float))
        # For the model, a failed setting is as slow as the slowest one; its own effect stays
        # "failed".
        finite_logs = winsorise(self._logs, 0.0)
        self._runs = rows["n"].to_numpy(dtype=float)
        self._noise = max(table.best[key].noise, _LEAST_NOISE)
        design = _dummies(table, table.factors[indices])
        self._guesses: dict[str, ShrunkEffect] = {}
        self._model = RidgeCV(alphas=_ALPHAS).fit(design, finite_logs)
        # The error of the model on unseen settings (leave one out), less the noise of the runs.
        misfit = -float(np.nan_to_num(self._model.best_score_)) - float(
            np.mean(self._noise**2 / self._runs)
        )
        self._misfit = max(misfit, (self._noise / 2) ** 2)
        prior = self._model.predict(design)
        own, model = self._runs / self._noise**2, 1 / self._misfit
        self._shrunk_logs = (own * finite_logs + model * prior) / (own + model)
        self._error = np.sqrt(1 / (own + model))

    def value(self, setting: Setting) -> ShrunkEffect:
        if setting.key not in self._guesses:
            self._guesses[setting.key] = self._guess(setting)
        return self._guesses[setting.key]

    def raw_gain(self, setting: Setting) -> float:
        return math.expm1(-self._logs[self.index[setting.key]])

    def _guess(self, setting: Setting) -> ShrunkEffect:
        at = self.index.get(setting.key)
        if at is None:
            model_log = float(self._model.predict(_one(self._table, setting))[0])
            return ShrunkEffect(model_log, math.sqrt(self._misfit + self._noise**2), False)
        if not math.isfinite(self._logs[at]):
            return ShrunkEffect(math.inf, 0.0, True)
        return ShrunkEffect(float(self._shrunk_logs[at]), float(self._error[at]), True)


def _dummies(table: RunTable, codes: NDArray[np.int_]) -> Floats:
    """One column for each level except the unset one, so that the default is a row of zeros."""
    parts = []
    for number, texts in enumerate(table.levels.values()):
        parts.append(codes[:, number, None] == np.arange(1, len(texts)))
    return np.concatenate(parts, axis=1).astype(np.float64)


def _one(table: RunTable, setting: Setting) -> Floats:
    codes = [
        list(texts.values()).index(setting[name]) if name in setting else 0
        for name, texts in table.levels.items()
    ]
    return _dummies(table, np.array([codes], dtype=np.int_))
