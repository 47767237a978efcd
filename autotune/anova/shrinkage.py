"""What every measured setting is worth on every cell, as far as the runs can tell.

One run says little and the luckiest of many says least, so a measured figure is drawn towards what
the setting's parameters do on the whole (a ridge regression per cell), by as much as its own noise
and the model's errors ask for.  Settings that were not measured on a cell have the model's figure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from autotune.anova.oneway import winsorised
from autotune.anova.table import RunTable
from autotune.space import DEFAULT, Setting

Floats = NDArray[np.float64]
_ALPHAS = tuple(10.0**power for power in range(-2, 4))
_LEAST_NOISE = 1e-3


@dataclass(frozen=True)
class ShrunkEffect:
    """log(T / T_default) of one setting on one cell, its standard error, and whether it was run."""

    log: float
    error: float
    measured: bool

    @property
    def gain(self) -> float:
        return math.expm1(-self.log)


class SettingEffects:
    """``value(cell, setting)`` for the cells of a table."""

    def __init__(
        self, table: RunTable, cells: Mapping[str, _Cell] | None = None, total: int = 0
    ) -> None:
        self.table = table
        self._cells = cells or {
            key: _Cell(table, key, number) for number, key in enumerate(table.cells)
        }
        self.total = total or max(len(table.cells), 1)

    def on(self, table: RunTable) -> SettingEffects:
        """The same figures for a part of the table: a cell's do not depend on other cells."""
        return SettingEffects(table, {key: self._cells[key] for key in table.cells}, self.total)

    @cached_property
    def everywhere(self) -> list[Setting]:
        """Settings that were run on every cell, in a fixed order; the default is not listed."""
        known = [set(cell.index) for cell in self._cells.values()]
        common = set.intersection(*known) - {DEFAULT.key} if known else set()
        return [self.table.settings[key] for key in sorted(common)]

    def value(self, cell: str, setting: Setting) -> ShrunkEffect:
        """The default is 0 by definition."""
        if setting == DEFAULT:
            return ShrunkEffect(0.0, 0.0, True)
        return self._cells[cell].value(setting)

    def raw_gain(self, cell: str, setting: Setting) -> float:
        """T_default / T - 1 as it was measured, luck included; the setting must have been run."""
        return self._cells[cell].raw_gain(setting)

    def share(self, cell: str, setting: Setting) -> float | None:
        """gain / gain of OPUB, at most 1; None on a null cell.

        A setting that looks better than OPUB is the best known by itself, and no more than that.
        """
        best = self.table.best[cell]
        return None if best.null else min(self.value(cell, setting).gain / best.gain, 1.0)

    def mean_share(self, setting: Setting, cells: Sequence[str]) -> float:
        """Mean share over programs (each the mean over its cells that have something to gain)."""
        by_app: dict[str, list[float]] = {}
        for cell in cells:
            share = self.share(cell, setting)
            if share is not None:
                by_app.setdefault(self.table.cells[cell].app, []).append(share)
        means = [sum(shares) / len(shares) for shares in by_app.values()]
        return sum(means) / len(means) if means else 0.0

    def merit(self, setting: Setting, cells: Sequence[str]) -> tuple[float, float]:
        """To choose by: the mean share, then the mean log gain, which has no upper bound."""
        logs = [self.value(cell, setting).log for cell in cells]
        return self.mean_share(setting, cells), -sum(logs) / max(len(logs), 1)

    def slower(
        self, setting: Setting, cells: Sequence[str], sigmas: float | None = None
    ) -> list[str]:
        """Cells on which the setting is slower than the default beyond noise.

        By ``sigmas`` standard errors; None: so many that the chance of naming any wrongly is 5 %
        over all cells of all programs.
        """
        if sigmas is None:
            sigmas = float(stats.norm.isf(0.05 / self.total))
        found = []
        for cell in cells:
            guess = self.value(cell, setting)
            # One per cent is lost in the noise of any comparison that will be made.
            if guess.log > max(sigmas * guess.error, 0.01):
                found.append(cell)
        return found

    def certainty(self, pairs: Sequence[tuple[str, Setting]]) -> float:
        """Mean log gain over cells with the setting of each, in standard errors; 0 for none."""
        guesses = [self.value(cell, s) for cell, s in pairs if s != DEFAULT]
        error = math.sqrt(sum(guess.error**2 for guess in guesses))
        return -sum(guess.log for guess in guesses) / error if error > 0 else 0.0


class _Cell:
    def __init__(self, table: RunTable, key: str, number: int) -> None:
        from sklearn.linear_model import RidgeCV  # a second to import, and rarely needed

        here = np.flatnonzero(table.blocks == number)
        rows = table.rows.iloc[here]
        known = {str(k): i for i, k in enumerate(rows["key"])}
        same: Mapping[str, str] = table.same.get(key, {})
        self.index = known | {k: known[v] for k, v in same.items() if v in known}
        self._table = table
        self._logs = np.log(rows["ratio"].to_numpy(dtype=float))
        # A failed setting is as slow as the slowest seen, for the model; it stays failed by itself.
        capped = winsorised(self._logs, 0.0)
        self._runs = rows["n"].to_numpy(dtype=float)
        self._noise = max(table.best[key].noise, _LEAST_NOISE)
        design = _dummies(table, table.factors[here])
        self._guesses: dict[str, ShrunkEffect] = {}
        self._model = RidgeCV(alphas=_ALPHAS).fit(design, capped)
        # The model's error on settings it did not see (leave one out), less the runs' own noise.
        missed = -float(np.nan_to_num(self._model.best_score_)) - float(
            np.mean(self._noise**2 / self._runs)
        )
        self._misfit = max(missed, (self._noise / 2) ** 2)
        prior = self._model.predict(design)
        own, model = self._runs / self._noise**2, 1 / self._misfit
        self._drawn = (own * capped + model * prior) / (own + model)
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
            modelled = float(self._model.predict(_one(self._table, setting))[0])
            return ShrunkEffect(modelled, math.sqrt(self._misfit + self._noise**2), False)
        if not math.isfinite(self._logs[at]):
            return ShrunkEffect(math.inf, 0.0, True)
        return ShrunkEffect(float(self._drawn[at]), float(self._error[at]), True)


def _dummies(table: RunTable, codes: NDArray[np.int_]) -> Floats:
    """One column a level but the unset one, so that the default is a row of zeros."""
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
