"""The table of the analysis: one row for each setting and cell, with the median of its runs.

Repeats of a setting are not rows: they make a row more exact, but do not say how settings differ.

A table is built from a recorded dataset, or from a study in the results database.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from autotune.anova.best_known import Opub, opub_of
from autotune.datasets import Cell, Dataset, load
from autotune.errors import UsageError
from autotune.measurement.run_history import history_of
from autotune.notes import Note
from autotune.space import DEFAULT, Setting, Value
from autotune.store import Store, StudyRecord
from autotune.wording import MAY_BE_OTHERS, UNGUARDED

if TYPE_CHECKING:
    import pandas as pd


UNSET = "default"
"""The level of a parameter that a setting does not name."""


@dataclass(frozen=True)
class CellFacts:
    """A cell: program, input, ranks and cluster.  ``key`` is its name in the data."""

    key: str
    app: str
    input: str | None
    ranks: int
    cluster: str = "local"


@dataclass(frozen=True)
class RunTable:
    """The rows of the analysis with their parameters, levels and cells.

    ``rows``: columns cell, key (of the setting), ratio (T / T_default; ``inf``: failed), n (runs),
    ok.

    ``same``: for each cell, settings that have the same effect there as another setting, which has
    the runs.

    ``factors``: shape (rows, parameters), the position of the row's level in ``levels`` of the
    parameter. The keys of ``levels`` are the levels as text, ``UNSET`` (no value) first.
    ``defaults``: the values of unset parameters, if known. ``best``: OPUB of each cell.
    ``unguarded``: a note on runs without the guard, None if there are none. ``damaged``: notes on
    rows of the database that were left out. ``joined``: parameters are words of layouts, which join
    cells with different parameters; None if they are not.
    """

    origin: str
    rows: pd.DataFrame
    factors: NDArray[np.int_]
    levels: Mapping[str, Mapping[str, Value | None]]
    defaults: Mapping[str, Value]
    cells: Mapping[str, CellFacts]
    settings: Mapping[str, Setting]
    best: Mapping[str, Opub]
    same: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unguarded: Note | None = None
    damaged: tuple[Note, ...] = ()
    joined: Note | None = None

    @cached_property
    def names(self) -> list[str]:
        return list(self.levels)

    def where(self, keep: Callable[[CellFacts], bool]) -> RunTable:
        """The rows of the cells for which ``keep`` is true; may be empty."""
        cells = {key: place for key, place in self.cells.items() if keep(place)}
        mask = self.rows["cell"].isin(list(cells)).to_numpy()
        return RunTable(
            self.origin,
            self.rows[mask].reset_index(drop=True),
            self.factors[mask],
            self.levels,
            self.defaults,
            cells,
            self.settings,
            {key: self.best[key] for key in cells},
            {key: self.same.get(key, {}) for key in cells},
            joined=self.joined,
        )

    def without(self, names: Collection[str]) -> RunTable:
        """The same rows without these parameters, for example those that have no effect."""
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
        import pandas as pd

        return np.asarray(pd.factorize(self.rows["key"])[0], dtype=np.int_)


@dataclass(frozen=True)
class CellRuns:
    """The runs of one cell, from a dataset or a study.

    ``runs``: columns key, ratio (to the default of its block; ``inf``: failed), ok (a valid run).
    ``same``: as in :class:`RunTable`.
    """

    place: CellFacts
    runs: pd.DataFrame
    same: Mapping[str, str] = field(default_factory=dict)


def build_table(
    origin: str,
    cells: Sequence[CellRuns],
    settings: Mapping[str, Setting],
    defaults: Mapping[str, Value],
) -> RunTable:
    """A table from raw runs.  Raises UsageError where no setting but the default was measured."""
    import pandas as pd

    parts, best = [], {}
    for cell in cells:
        medians = _medians(cell.runs)
        medians.insert(0, "cell", cell.place.key)
        best[cell.place.key] = opub_of(cell.runs)
        parts.append(medians)
    rows = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["key"])
    tried_keys = set(rows["key"]) - {DEFAULT.key}
    if not tried_keys:
        raise UsageError(
            f"{origin} has no runs of any setting but the default: there is nothing to compare; "
            "measure some with autotune explore or autotune search",
            code="dataset.default_only",
        )
    levels = _levels([settings[key] for key in sorted(tried_keys)])
    numbers, keys = pd.factorize(rows["key"])
    codes = np.array([_codes(settings[f"{key}"], levels) for key in keys], dtype=np.int_)
    places = {cell.place.key: cell.place for cell in cells}
    same = {cell.place.key: cell.same for cell in cells}
    return RunTable(origin, rows, codes[numbers], levels, defaults, places, settings, best, same)


def _medians(runs: pd.DataFrame) -> pd.DataFrame:
    """One row for each setting; a setting is ok if more than half of its runs are."""
    groups = runs.groupby("key", sort=True)
    medians = groups["ratio"].median().to_frame("ratio")
    medians["n"] = groups.size()
    medians["ok"] = groups["ok"].mean() > 0.5
    return medians.reset_index()


def _levels(settings: Sequence[Setting]) -> dict[str, dict[str, Value | None]]:
    names = sorted({name for setting in settings for name in setting})
    levels: dict[str, dict[str, Value | None]] = {}
    for name in names:
        values: set[Value] = {setting[name] for setting in settings if name in setting}
        order = sorted(values, key=lambda v: (isinstance(v, str), v))
        levels[name] = {UNSET: None, **{_text(value): value for value in order}}
    return levels


def _codes(setting: Setting, levels: Mapping[str, Mapping[str, Value | None]]) -> list[int]:
    return [list(texts).index(_text(setting.get(name))) for name, texts in levels.items()]


def _text(value: Value | None) -> str:
    return UNSET if value is None else f"{value}"


def numeric(table: RunTable, name: str) -> NDArray[np.float64]:
    """The parameter as a number in each row; NaN if it is a word, or unset with unknown default."""
    default = table.defaults.get(name)
    of_level = [_number(default if v is None else v) for v in table.levels[name].values()]
    return np.array(of_level, dtype=np.float64)[table.codes(name)]


def _number(value: Value | None) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


STUDY = "study:"
WHOLE = ("ok",)


def read_table(source: str, store: str | Path | None = None) -> RunTable:
    """The table of a dataset (name or folder) or of ``study:ID``; raises UsageError without one."""
    if not source.startswith(STUDY):
        return dataset_table(load(source))
    with Store.open_to_read(store) as results:
        return study_table(results, results.find_study(source.removeprefix(STUDY)))


def dataset_table(
    dataset: Dataset,
    cells: Sequence[Cell] | None = None,
    apps: Sequence[str] = (),
    keep: Callable[[Setting], bool] = lambda setting: True,
) -> RunTable:
    """The table of a dataset's cells, or of ``cells``; ``apps`` keeps these programs only, and
    ``keep`` the settings for which it is true.

    Raises UsageError for a program that the dataset does not have.
    """
    selection = list(dataset.measured_cells if cells is None else cells)
    check_apps(dataset, selection, apps)
    if apps:
        selection = [cell for cell in selection if cell.app in apps]
    frames: list[CellRuns] = []
    settings: dict[str, Setting] = {}
    defaults: dict[str, Value] = {}
    for cell in selection:
        candidates = dataset.settings(cell)
        by_key = {setting.key: setting for setting in candidates if keep(setting)}
        settings |= by_key
        defaults |= _defaults(dataset, cell)
        runs = cell_runs(dataset.runs(cell), candidates)
        same = _same(dataset, cell, candidates)
        frames.append(
            CellRuns(
                cell_facts(cell),
                runs[runs["key"].isin(list(by_key))].reset_index(drop=True),
                {one: other for one, other in same.items() if {one, other} <= by_key.keys()},
            )
        )
    table = build_table(f"dataset {dataset.name}", frames, settings, defaults)
    return replace(table, unguarded=dataset.card.guard_note)


def check_apps(dataset: Dataset, cells: Sequence[Cell], apps: Sequence[str]) -> None:
    """Raise UsageError for a program of which these cells of the dataset have no runs."""
    have = sorted({cell.app for cell in cells})
    for app in apps:
        if app not in have:
            raise UsageError(
                f"dataset {dataset.name} has no runs of {app!r}; its programs: {', '.join(have)}",
                code="dataset.app_unknown",
            )


def cell_facts(cell: Cell) -> CellFacts:
    """The cell of a dataset as a cell of a table."""
    return CellFacts(cell.key, cell.app, cell.input or None, cell.ranks, cell.cluster)


def _defaults(dataset: Dataset, cell: Cell) -> dict[str, Value]:
    return {p.name: p.default for p in dataset.space(cell) if p.default is not None}


def _same(dataset: Dataset, cell: Cell, settings: Sequence[Setting]) -> dict[str, str]:
    """Settings that differ only in inactive parameters of this cell, which were run once."""
    first = dataset.representatives(cell)
    return {s.key: settings[i].key for s, i in zip(settings, first, strict=True)}


def cell_runs(raw: pd.DataFrame, settings: Sequence[Setting]) -> pd.DataFrame:
    """The runs of a cell.  "altered" runs did not use their setting and are left out."""
    import pandas as pd

    usable = raw[raw["state"] != "altered"]
    keys = [settings[int(number)].key for number in usable["setting"]]
    return pd.DataFrame(
        {
            "key": keys,
            "ratio": usable["ratio"].to_numpy(dtype=float),
            "ok": usable["state"].isin(WHOLE).to_numpy(),
        }
    )


def study_table(store: Store, study: StudyRecord) -> RunTable:
    """The runs of all phases of a study, each relative to the runs of the default around it."""
    import pandas as pd

    history = history_of(store, study.id)
    rows = []
    for entry in history.entries:
        if not entry.counts:
            continue
        ratio = history.ratio(entry)
        is_lost = not entry.record.valid and not entry.censored
        if ratio is None and not is_lost:
            continue
        rows.append((entry.key, math.inf if ratio is None else ratio, entry.record.valid))
    settings = {key: Setting.parse(key) for key in {key for key, _, _ in rows}}
    key = study.key
    place = CellFacts(study.hash[:12], key.app.name, key.app.input, key.ranks, key.cluster)
    frame = pd.DataFrame(rows, columns=["key", "ratio", "ok"])
    table = build_table(f"study {study.hash[:12]}", [CellRuns(place, frame)], settings, {})
    off = Note("guard.off", f"{UNGUARDED}: {MAY_BE_OTHERS}")
    guard_note = None if key.has_guard else off
    return replace(table, unguarded=guard_note, damaged=tuple(store.damage.notes))
