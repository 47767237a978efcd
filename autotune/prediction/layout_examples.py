"""Examples of layouts: recorded cells whose parameters belong to their program, as points.

Parameters without a word say nothing about other programs. So an example has the settings that
leave them at their defaults; the best known gain is that of all settings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from autotune.anova.layout_rules import Choices
from autotune.anova.layout_table import family_of
from autotune.calibration.wire import NODE, Wire
from autotune.datasets import Cell, Dataset, Landscape, load
from autotune.notes import Note
from autotune.prediction.examples import (
    ExampleSet,
    has_own_parameters,
    stored_calibration,
    stored_features,
)
from autotune.prediction.layout_parts import FlatRun, layout_parts
from autotune.prediction.layout_points import layout_points
from autotune.prediction.measured_cell import Floats, MeasuredCell
from autotune.space import DEFAULT, Setting
from autotune.space.eager import eager_limit
from autotune.wording import count


@dataclass(frozen=True, eq=False)
class LayoutExample(MeasuredCell):
    """One cell with its settings as points, shape (settings, columns), as parts of its time, shape
    (settings, parts), and as levels of words; other fields as of
    :class:`autotune.prediction.examples.Example`."""

    key: str
    app: str
    ranks: int
    cluster: str
    settings: tuple[Setting, ...]
    runs: tuple[tuple[float, ...], ...]
    points: Floats
    parts: Floats
    choices: Choices
    opub: float = 1.0
    null: bool = True
    machine: str = ""
    mpi: str = ""
    split: str = "design"
    extreme: ClassVar[float] = math.log(3)
    """Layouts gain more than parameters of a library; below this limit they are told apart."""


@dataclass(frozen=True, eq=False)
class LayoutTrainingSet(ExampleSet[LayoutExample]):
    """Examples from recordings.  Raises UsageError for fewer than three programs: each is left out
    in turn to check the model."""

    examples: tuple[LayoutExample, ...]
    sources: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        self.require_programs(f"layouts of {count(len(self.apps), 'program')}", "; add datasets")

    @cached_property
    def hash(self) -> str:
        """Digest of settings, points, parts (six digits) and runs."""
        return self.digest(
            lambda e: [
                *(e.key, e.app, [s.key for s in e.settings]),
                [[f"{x:.6g}" for x in row] for row in e.points.tolist()],
                [[f"{x:.6g}" for x in row] for row in e.parts.tolist()],
            ]
        )


def has_layouts(dataset: Dataset, cell: Cell) -> bool:
    """True if the parameters of a cell belong to its program, and its space has words."""
    return has_own_parameters(dataset.space(cell)) and bool(dataset.layouts(cell).words)


def only_layouts(places: Sequence[str | Path]) -> bool:
    """True if all cells of these datasets have layouts: then a model over layouts is meant."""
    datasets = [load(place) for place in places]
    return bool(datasets) and all(
        has_layouts(dataset, cell) for dataset in datasets for cell in dataset.cells
    )


def layout_training_set(
    places: Sequence[str | Path], split: str | None = None
) -> LayoutTrainingSet:
    """The training set of the cells with layouts, from datasets (names or folders); ``split``
    selects the cells of one split.

    Cells without layouts, and those that lack runs, are left out and listed in the notes. Raises
    UsageError if fewer than three programs are left, or for an invalid file.
    """
    examples: list[LayoutExample] = []
    notes: list[Note] = []
    for place in places:
        dataset = load(place)
        if (off := dataset.card.guard_note) is not None:
            notes.append(Note(off.code, f"{dataset.name}: {off.words}", off.data))
        for cell in dataset.cells:
            if split is not None and cell.split != split:
                continue
            example = _example(dataset, cell, len(places) > 1)
            if isinstance(example, Note):
                notes.append(example)
            else:
                examples.append(example)
    return LayoutTrainingSet(tuple(examples), tuple(str(p) for p in places), tuple(notes))


def _example(dataset: Dataset, cell: Cell, several: bool) -> LayoutExample | Note:
    where = f"{dataset.name}/{cell.key}"
    if not has_layouts(dataset, cell):
        words = f"{where} is left out: its space has no words of layouts"
        return Note("cell.no_layouts", words, {"cell": where})
    layouts, settings = dataset.layouts(cell), dataset.settings(cell)
    runs = dataset.runs(cell)
    same = dataset.representatives(cell)
    by_setting = {int(str(i)): tuple(g["ratio"]) for i, g in runs.groupby("setting")}
    indices = [
        i
        for i, first in enumerate(same)
        if first in by_setting and not len(layouts.layout(settings[i]).own)
    ]
    if 0 not in indices or len(indices) < 2:
        words = f"{where} is left out: it needs runs of the default and of another layout"
        return Note("cell.few_runs", words, {"cell": where})
    ratio, null = _best(dataset, cell)
    choice = tuple(settings[i] for i in indices)
    family = family_of(dataset)
    return LayoutExample(
        key=where if several else cell.key,
        app=cell.app,
        ranks=cell.ranks,
        cluster=cell.cluster,
        settings=choice,
        runs=tuple(by_setting[same[i]] for i in indices),
        points=layout_points(layouts, choice, family),
        parts=layout_parts(
            _flat_run(dataset, cell), cell_wire(dataset, cell), layouts, choice, family
        ),
        choices=Choices.of(layouts, choice, family),
        opub=ratio,
        null=null,
        machine=dataset.card.machine.fingerprint,
        mpi=dataset.card.mpi,
        split=cell.split,
    )


def _flat_run(dataset: Dataset, cell: Cell) -> FlatRun | None:
    features = stored_features(dataset, cell)
    if features is None:
        return None
    runs = dataset.runs(cell)
    defaults = runs[(runs["setting"] == 0) & (runs["state"] == "ok")]
    return FlatRun.of(features, float(defaults["value_s"].median()))


def cell_wire(dataset: Dataset, cell: Cell) -> Wire | None:
    """The wire between the processes of a cell: as a calibration measured it, else as the card
    says; None if neither does."""
    facts = cell.facts
    nodes = int(facts.get("nodes", 1))
    calibration = stored_calibration(dataset)
    table = None if calibration is None else calibration.table(cell.ranks, nodes)
    if table is not None:
        limit = eager_limit(family_of(dataset), nodes, DEFAULT)
        if (wire := Wire.of_table(table, limit)) is not None:
            return wire
    if cell.wire is not None:
        return Wire.of_link(cell.wire.latency_s, cell.wire.rate_bps)
    return NODE if nodes == 1 else None


def _best(dataset: Dataset, cell: Cell) -> tuple[float, bool]:
    """T_OPUB / T_default over all settings of the cell, and True if the cell is null."""
    landscape = Landscape(dataset, cell.key)
    ratio, null = landscape.best.ratio, landscape.null
    if null or not ratio < 1 or not math.isfinite(ratio):
        return 1.0, True
    return ratio, False
