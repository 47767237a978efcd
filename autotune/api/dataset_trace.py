"""The features of a dataset's cells, each from one traced run."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence

from autotune.api.features import traced_features
from autotune.api.target import find_target, to_stderr
from autotune.datasets.card import Cell
from autotune.datasets.catalog import is_shipped
from autotune.datasets.dataset import FEATURES, Dataset
from autotune.datasets.plan import with_args
from autotune.errors import UsageError
from autotune.notes import once
from autotune.prediction.layout_examples import has_layouts
from autotune.targets.request import TargetRequest
from autotune.wording import count
from runner.files.paths import exists, is_file


def trace_cells(
    dataset: Dataset, mpi: str | None, guard: bool, force: bool, run_recorded: bool
) -> tuple[int, int]:
    """Trace the cells without features (all with ``force``); the numbers of cells that were traced
    and that have features now.

    ``run_recorded``: arguments from the dataset's card are used. Raises UsageError for a dataset
    that is shipped, or one with arguments that are not to be used.
    """
    place = dataset.folder / FEATURES
    trace_count = 0
    cells = [
        cell
        for cell in dataset.cells
        if (force or not exists(place / f"{cell.key}.json"))
        and (not dataset.space(cell).requires or has_layouts(dataset, cell))
    ]
    if cells and is_shipped(dataset.folder):
        raise UsageError(
            f"{dataset.folder} is shipped with autotune and is not changed; copy it first "
            f"with: autotune dataset import {shlex.quote(str(dataset.folder))}",
            code="dataset.shipped",
        )
    if not run_recorded:
        _refuse_arguments(cells)
    say = once(to_stderr)
    for cell in cells:
        path = place / f"{cell.key}.json"
        words = TargetRequest(
            app=cell.app,
            input=cell.input or None,
            ranks=cell.ranks,
            cluster=cell.cluster,
            mpi=mpi,
            command="dataset trace",
        )
        target = find_target(words, say)
        if cell.args is not None:
            app = with_args(target.app, cell.input or target.app.usual_input, cell.args)
            target = dataclasses.replace(target, app=app)
        features, _ = traced_features(target, guard=guard)
        place.mkdir(exist_ok=True)
        features.portable().save(path)
        trace_count += 1
    have = sum(is_file(place / f"{cell.key}.json") for cell in dataset.cells)
    return trace_count, have


def _refuse_arguments(cells: Sequence[Cell]) -> None:
    foreign_cells = [cell for cell in cells if cell.args is not None]
    if foreign_cells:
        lines = "".join(
            f"\n  {c.key}: {c.app} {list(c.args or ())!r:.400}" for c in foreign_cells[:8]
        )
        raise UsageError(
            "the dataset's card gives arguments for the programs of "
            f"{count(len(foreign_cells), 'cell')}:{lines}\nNothing was run. Check these arguments; "
            "if you want to run them here, add --run-recorded",
            code="dataset.untrusted_arguments",
        )
