"""The table of cells whose spaces differ, joined by the vocabulary of layouts.

Parameters of one program tell nothing about another. In the words of layouts they do: the levels of
a word are the same for all programs (:func:`levels_of`), and a row has those in which its setting
differs from the default of its cell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from autotune.anova.table import (
    STUDY,
    CellRuns,
    RunTable,
    build_table,
    cell_facts,
    cell_runs,
    read_table,
)
from autotune.datasets import Cell, Dataset, load
from autotune.notes import Note
from autotune.space import DEFAULT, Setting, Value
from autotune.space.eager import eager_limit
from autotune.space.layout import LayoutMap
from autotune.space.vocabulary import VOCABULARY

LEFT_OUT = ("processes",)
"""Words that are no levels of their own: the workers say how many processes there are."""
SHORT, EAGER, LONG = "short", "eager", "long"
SHORTEST = 16
"""A message is short below this part of the eager limit: there each one costs as much as a longer
one."""
MOST = 16
"""Numbers of parts count up to this power of two; larger ones are one level."""
JOINED = (
    "cells with different parameters are joined by the words of layouts; a value is that of the "
    "word (docs/reference/spaces.md#layouts)"
)
LEAST = 4
"""A level of a word with fewer rows is not judged. It is less than for parameters, because rows of
one word are spread over programs, and all words are in one model."""


def levels_of(layouts: LayoutMap, setting: Mapping[str, Value], family: str) -> dict[str, Value]:
    """The levels of the words of a setting: texts as they are, numbers as powers of two, and chunks
    against the eager limit (``short``, ``eager``, ``long``)."""
    words = layouts.layout(setting).words
    nodes = layouts.space.facts.get("nodes", 1)
    limit = eager_limit(family, int(nodes) if isinstance(nodes, int) else 1, setting)
    return {
        word: _level(word, value, limit) for word, value in words.items() if word not in LEFT_OUT
    }


def _level(word: str, value: Value, limit: int) -> Value:
    if word == "chunk":
        size = float(value)
        return SHORT if size < limit / SHORTEST else EAGER if size < limit else LONG
    if VOCABULARY[word].is_text or isinstance(value, str):
        return value
    return min(2 ** round(math.log2(value)), MOST) if value >= 1 else 1


def reference_levels(
    layouts: LayoutMap, settings: Sequence[Setting], family: str
) -> dict[str, Value]:
    """The levels of the default; for words that it lacks, those of the shortest setting with them.

    So a queue that every form with tasks has is no difference.
    """
    levels = levels_of(layouts, DEFAULT, family)
    for setting in sorted(settings, key=len):
        for word, value in levels_of(layouts, setting, family).items():
            levels.setdefault(word, value)
    return levels


def differences(levels: Mapping[str, Value], default: Mapping[str, Value]) -> Setting:
    """The levels in which a layout differs from the default's."""
    return Setting({word: v for word, v in levels.items() if v != default.get(word)})


def family_of(dataset: Dataset) -> str:
    """The family of the MPI library with which a dataset was measured."""
    return dataset.card.mpi.partition(" ")[0]


def speaks_layouts(dataset: Dataset, cells: Sequence[Cell]) -> bool:
    """True if the cells were measured with different spaces, and all of them have words."""
    names = {dataset.space_name(cell) for cell in cells}
    return len(names) > 1 and all(dataset.layouts(cell).words for cell in cells)


def _common_parameters(dataset: Dataset, cells: Sequence[Cell]) -> set[str]:
    """Parameters without a word that all cells have: they are compared as they are."""
    names = [set(dataset.space(cell).names) & set(dataset.layouts(cell).own) for cell in cells]
    return set.intersection(*names) - set(VOCABULARY)


def layout_table(dataset: Dataset, cells: Sequence[Cell]) -> RunTable:
    """The table of these cells with words as parameters: one row for each setting and cell."""
    frames: list[CellRuns] = []
    own = _common_parameters(dataset, cells)
    settings: dict[str, Setting] = {DEFAULT.key: DEFAULT}
    for cell in cells:
        layouts, family = dataset.layouts(cell), family_of(dataset)
        default = reference_levels(layouts, dataset.settings(cell), family)
        names: dict[str, str] = {DEFAULT.key: DEFAULT.key}
        for setting in dataset.settings(cell):
            if setting == DEFAULT:
                continue
            names[setting.key] = f"{cell.key}:{setting.key}"
            levels = levels_of(layouts, setting, family)
            others = {name: value for name, value in setting.items() if name in own}
            settings[names[setting.key]] = Setting({**differences(levels, default), **others})
        runs = cell_runs(dataset.runs(cell), dataset.settings(cell))
        frames.append(CellRuns(cell_facts(cell), runs.assign(key=runs["key"].map(names))))
    table = build_table(f"dataset {dataset.name}", frames, settings, {})
    # The default of each cell is a unit of its own: its words differ from those of other cells.
    keys = table.rows["cell"].astype(str) + ":" + table.rows["key"].astype(str)
    rows = table.rows.assign(key=keys.where(table.rows["key"] == DEFAULT.key, table.rows["key"]))
    return replace(
        table,
        rows=pd.DataFrame(rows),
        joined=Note("layout.joined", JOINED, {"cells": list(table.cells)}),
        unguarded=dataset.card.guard_note,
    )


def read_words_or_table(source: str, store: str | Path | None = None) -> RunTable:
    """The table of a dataset or study; in words of layouts if its cells have different parameters
    and words in common.  Raises UsageError without a source."""
    if not source.startswith(STUDY):
        dataset = load(source)
        if speaks_layouts(dataset, dataset.measured_cells):
            return layout_table(dataset, dataset.measured_cells)
    return read_table(source, store)
