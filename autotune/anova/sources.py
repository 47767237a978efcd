"""Where tables come from: a recorded dataset, or a study in the results database."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from autotune.anova.table import Measured, Place, Table, build
from autotune.datasets import Cell, Dataset, load
from autotune.errors import UsageError
from autotune.space import Setting, Value
from autotune.store import Store, Study
from autotune.study.book import ledger_of
from autotune.words import MAY_BE_OTHERS, UNGUARDED

STUDY = "study:"
WHOLE = ("ok",)


def read_table(wanted: str, store: str | Path | None = None) -> Table:
    """The table of a dataset (name or folder) or of ``study:ID``; raises UsageError for neither."""
    if not wanted.startswith(STUDY):
        return dataset_table(load(wanted))
    with Store.open_to_read(store) as opened:
        return study_table(opened, opened.find_study(wanted.removeprefix(STUDY)))


def dataset_table(
    dataset: Dataset, cells: Sequence[Cell] | None = None, apps: Sequence[str] = ()
) -> Table:
    """A dataset's cells, or some of them; ``apps`` keeps these programs only.

    Raises UsageError for a program that the dataset does not have.
    """
    chosen = list(dataset.cells if cells is None else cells)
    have = sorted({cell.app for cell in chosen})
    for app in apps:
        if app not in have:
            raise UsageError(
                f"dataset {dataset.name} has no runs of {app!r}; its programs: {', '.join(have)}"
            )
    if apps:
        chosen = [cell for cell in chosen if cell.app in apps]
    measured: list[Measured] = []
    settings: dict[str, Setting] = {}
    defaults: dict[str, Value] = {}
    for cell in chosen:
        listed = dataset.settings(cell)
        settings |= {setting.key: setting for setting in listed}
        defaults |= _defaults(dataset, cell)
        measured.append(
            Measured(_place(cell), _runs(dataset.runs(cell), listed), _same(dataset, cell, listed))
        )
    made = build(f"dataset {dataset.name}", measured, settings, defaults)
    return replace(made, unguarded=dataset.card.unguarded)


def _place(cell: Cell) -> Place:
    return Place(cell.key, cell.app, cell.input or None, cell.ranks, cell.cluster)


def _defaults(dataset: Dataset, cell: Cell) -> dict[str, Value]:
    return {p.name: p.default for p in dataset.space(cell) if p.default is not None}


def _same(dataset: Dataset, cell: Cell, settings: Sequence[Setting]) -> dict[str, str]:
    """Settings that differ only in what does nothing in this cell were run once."""
    first = dataset.representatives(cell)
    return {s.key: settings[i].key for s, i in zip(settings, first, strict=True)}


def _runs(raw: pd.DataFrame, settings: Sequence[Setting]) -> pd.DataFrame:
    """Runs that were not obeyed ("altered") say nothing of their setting and are left out."""
    kept = raw[raw["state"] != "altered"]
    keys = [settings[int(number)].key for number in kept["setting"]]
    return pd.DataFrame(
        {
            "key": keys,
            "ratio": kept["ratio"].to_numpy(dtype=float),
            "ok": kept["state"].isin(WHOLE).to_numpy(),
        }
    )


def study_table(store: Store, study: Study) -> Table:
    """A study's runs of all phases, each against the runs of the default around it."""
    ledger = ledger_of(store, study.id)
    rows = []
    for entry in ledger.entries:
        if not entry.counts:
            continue
        ratio = ledger.ratio(entry)
        lost = not entry.record.valid and not entry.censored
        if ratio is None and not lost:
            continue
        rows.append((entry.key, math.inf if ratio is None else ratio, entry.record.valid))
    settings = {key: Setting.parse(key) for key in {key for key, _, _ in rows}}
    key = study.key
    place = Place(study.hash[:12], key.app.name, key.app.input, key.ranks, key.cluster)
    frame = pd.DataFrame(rows, columns=["key", "ratio", "ok"])
    made = build(f"study {study.hash[:12]}", [Measured(place, frame)], settings, {})
    return replace(made, unguarded="" if key.guarded else f"{UNGUARDED}: {MAY_BE_OTHERS}")
