"""Training sets from recorded datasets: their runs, and the features stored beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from autotune.anova.opub import opub
from autotune.datasets import Cell, Dataset, Landscape, load
from autotune.datasets.dataset import FEATURES
from autotune.errors import UsageError
from autotune.prediction.examples import Example, TrainingSet
from autotune.space import Setting, Value
from runner.trace import Features, FeaturesError, load_features

_OF_THE_PROGRAM = ("arg", "resource")
"""Parameters of these kinds change the program or its shape: another program has none such."""


def training_set(places: Sequence[str | Path], split: str | None = None) -> TrainingSet:
    """The cells of datasets (names or folders) that have features.

    ``split`` keeps the cells of one split ("design" or "report").  Cells without a features file,
    and those whose space belongs to their program, are left out and said in the notes.  Raises
    UsageError where fewer than three programs are left, or a file is wrong.
    """
    examples: list[Example] = []
    notes: list[str] = []
    defaults: dict[str, Value] = {}
    for place in places:
        dataset = load(place)
        if dataset.card.unguarded:
            notes.append(f"{dataset.name}: {dataset.card.unguarded}")
        for cell in dataset.cells:
            if split is not None and cell.split != split:
                continue
            found = _example(dataset, cell, len(places) > 1)
            if isinstance(found, str):
                notes.append(found)
                continue
            examples.append(found)
            space = dataset.space(cell)
            defaults |= {p.name: p.default for p in space if p.default is not None}
    return TrainingSet(tuple(examples), tuple(str(p) for p in places), defaults, tuple(notes))


def _example(dataset: Dataset, cell: Cell, several: bool) -> Example | str:
    """The cell as an example, or why it cannot be one."""
    where = f"{dataset.name}/{cell.key}"
    space = dataset.space(cell)
    if space.requires or any(p.target in _OF_THE_PROGRAM for p in space):
        return f"{where} is left out: its parameters belong to the program itself"
    features = features_of(dataset, cell)
    if features is None:
        return (
            f"{where} is left out: no {FEATURES}/{cell.key}.json in {dataset.folder} "
            "(made by: autotune features -o)"
        )
    runs = dataset.runs(cell)
    same = dataset.representatives(cell)
    by_setting = {int(str(i)): tuple(g["ratio"]) for i, g in runs.groupby("setting")}
    # Settings that mean the same here were run once, under the first one's number; elsewhere they
    # may differ, so each keeps its name.
    measured = [i for i, first in enumerate(same) if first in by_setting]
    if 0 not in measured or len(measured) < 2:
        return f"{where} is left out: it needs runs of the default and of another setting"
    settings = dataset.settings(cell)
    ratio, null = _best(dataset, cell, runs, settings)
    return Example(
        key=where if several else cell.key,
        app=cell.app,
        ranks=cell.ranks,
        cluster=cell.cluster,
        features=features,
        settings=tuple(settings[i] for i in measured),
        runs=tuple(by_setting[same[i]] for i in measured),
        opub=ratio,
        null=null,
        machine=dataset.card.machine.fingerprint,
        mpi=dataset.card.mpi,
    )


def features_of(dataset: Dataset, cell: Cell) -> Features | None:
    """What was traced of the cell's launch; None where it was not.  Raises UsageError."""
    path = dataset.folder / FEATURES / f"{cell.key}.json"
    if not path.is_file():
        return None
    try:
        features = load_features(path)
    except FeaturesError as problem:
        raise UsageError(str(problem)) from None
    if features.ranks != cell.ranks:
        raise UsageError(
            f"{path}: ranks is {features.ranks}, but the card says {cell.ranks} for cell "
            f"{cell.key}; trace the cell again"
        )
    return features


def _best(
    dataset: Dataset, cell: Cell, runs: pd.DataFrame, settings: Sequence[Setting]
) -> tuple[float, bool]:
    """T_OPUB / T_default and whether the cell is null, as the replay (grids) or anova has it."""
    if dataset.kind == "grid":
        landscape = Landscape(dataset, cell.key)
        ratio, null = landscape.best.ratio, landscape.null
    else:
        table = pd.DataFrame(
            {
                "key": [settings[int(i)].key for i in runs["setting"]],
                "ratio": runs["ratio"],
                "ok": runs["state"] == "ok",
            }
        )
        known = opub(table)
        ratio, null = 1 / (1 + known.gain), known.null
    # What is not better than the default cannot be the scale of a share.
    if null or not ratio < 1 or not math.isfinite(ratio):
        return 1.0, True
    return ratio, False
