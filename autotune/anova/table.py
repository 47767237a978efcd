"""Rows for the analysis: one per setting and cell, the median of its runs.

Repeats of a setting are not rows: they say how exact a row is, not how settings differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from autotune.anova.opub import Opub, opub
from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting, Value

UNSET = "default"
"""The level of a parameter that a setting does not name."""


@dataclass(frozen=True)
class Place:
    """A cell: program, input, ranks and cluster.  ``key`` is its name in the data."""

    key: str
    app: str
    input: str | None
    ranks: int
    cluster: str = "local"


@dataclass(frozen=True)
class Table:
    """``rows``: columns cell, key (of the setting), ratio (T / T_default; ``inf``: failed), n, ok.

    ``same``: per cell, settings that mean the same there as another one, which has the runs.

    ``factors``: shape (rows, parameters), the position of the row's level in ``levels`` of the
    parameter, whose keys are the levels as text, ``UNSET`` (no value) first.  ``defaults``: what
    unset means, where that is known.  ``best``: per cell what the best setting is worth.
    ``unguarded``: words for runs without the guard, "" where there are none.
    """

    origin: str
    rows: pd.DataFrame
    factors: NDArray[np.int_]
    levels: Mapping[str, Mapping[str, Value | None]]
    defaults: Mapping[str, Value]
    cells: Mapping[str, Place]
    settings: Mapping[str, Setting]
    best: Mapping[str, Opub]
    same: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unguarded: str = ""

    @cached_property
    def names(self) -> list[str]:
        return list(self.levels)

    def where(self, keep: Callable[[Place], bool]) -> Table:
        """The part of the table whose cells are kept; may be empty."""
        cells = {key: place for key, place in self.cells.items() if keep(place)}
        mask = self.rows["cell"].isin(list(cells)).to_numpy()
        return Table(
            self.origin,
            self.rows[mask].reset_index(drop=True),
            self.factors[mask],
            self.levels,
            self.defaults,
            cells,
            self.settings,
            {key: self.best[key] for key in cells},
            {key: self.same.get(key, {}) for key in cells},
        )

    def without(self, names: Collection[str]) -> Table:
        """The same rows without these parameters: what does nothing is no factor."""
        left = {name: levels for name, levels in self.levels.items() if name not in names}
        columns = [self.names.index(name) for name in left]
        return replace(self, levels=left, factors=self.factors[:, columns])

    def codes(self, name: str) -> NDArray[np.int_]:
        """Position of every row's level in ``levels[name]``; shape (rows,)."""
        return np.asarray(self.factors[:, self.names.index(name)])

    @cached_property
    def blocks(self) -> NDArray[np.int_]:
        """The cell of every row as a number from 0; shape (rows,)."""
        order = {key: i for i, key in enumerate(self.cells)}
        return np.asarray(self.rows["cell"].map(order).to_numpy(), dtype=np.int_)

    @cached_property
    def units(self) -> NDArray[np.int_]:
        """The setting of every row as a number from 0; shape (rows,)."""
        return np.asarray(pd.factorize(self.rows["key"])[0], dtype=np.int_)


@dataclass(frozen=True)
class Measured:
    """One cell's runs, as a source hands them over.

    ``runs``: columns key, ratio (to the default of its block; ``inf``: failed), ok (a whole run).
    ``same``: as of :class:`Table`.
    """

    place: Place
    runs: pd.DataFrame
    same: Mapping[str, str] = field(default_factory=dict)


def build(
    origin: str,
    cells: Sequence[Measured],
    settings: Mapping[str, Setting],
    defaults: Mapping[str, Value],
) -> Table:
    """A table from raw runs.  Raises UsageError where no setting but the default was measured."""
    parts, best = [], {}
    for cell in cells:
        medians = _medians(cell.runs)
        medians.insert(0, "cell", cell.place.key)
        best[cell.place.key] = opub(cell.runs)
        parts.append(medians)
    rows = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["key"])
    used = set(rows["key"]) - {DEFAULT.key}
    if not used:
        raise UsageError(
            f"{origin} has no runs of any setting but the default: there is nothing to compare; "
            "measure some with autotune explore or autotune search"
        )
    levels = _levels([settings[key] for key in sorted(used)])
    numbers, keys = pd.factorize(rows["key"])
    codes = np.array([_codes(settings[f"{key}"], levels) for key in keys], dtype=np.int_)
    places = {cell.place.key: cell.place for cell in cells}
    same = {cell.place.key: cell.same for cell in cells}
    return Table(origin, rows, codes[numbers], levels, defaults, places, settings, best, same)


def _medians(runs: pd.DataFrame) -> pd.DataFrame:
    """One row a setting; a setting is ok where its median run is a whole one."""
    grouped = runs.groupby("key", sort=True)
    found = grouped["ratio"].median().to_frame("ratio")
    found["n"] = grouped.size()
    found["ok"] = grouped["ok"].mean() > 0.5
    return found.reset_index()


def _levels(settings: Sequence[Setting]) -> dict[str, dict[str, Value | None]]:
    names = sorted({name for setting in settings for name in setting})
    found: dict[str, dict[str, Value | None]] = {}
    for name in names:
        values: set[Value] = {setting[name] for setting in settings if name in setting}
        ordered = sorted(values, key=lambda v: (isinstance(v, str), v))
        found[name] = {UNSET: None, **{_text(value): value for value in ordered}}
    return found


def _codes(setting: Setting, levels: Mapping[str, Mapping[str, Value | None]]) -> list[int]:
    return [list(texts).index(_text(setting.get(name))) for name, texts in levels.items()]


def _text(value: Value | None) -> str:
    return UNSET if value is None else f"{value}"


def numeric(table: Table, name: str) -> NDArray[np.float64]:
    """The parameter as a number per row; NaN where it is a word, or unset with unknown default."""
    default = table.defaults.get(name)
    of_level = [_number(default if v is None else v) for v in table.levels[name].values()]
    return np.array(of_level, dtype=np.float64)[table.codes(name)]


def _number(value: Value | None) -> float:
    return float(value) if isinstance(value, int | float) else math.nan
