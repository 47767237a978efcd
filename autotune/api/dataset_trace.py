"""The features of a dataset's cells, each from one traced run."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence

from autotune.api.features import traced_features
from autotune.api.target import find_target
from autotune.datasets.card import Cell
from autotune.datasets.catalog import is_shipped
from autotune.datasets.dataset import FEATURES, Dataset
from autotune.datasets.plan import with_args
from autotune.errors import UsageError
from autotune.targets.request import TargetRequest
from autotune.wording import count
from runner.files.paths import exists, is_file


def trace_cells(
    found: Dataset, mpi: str | None, guard: bool, force: bool, run_recorded: bool
) -> tuple[int, int]:
    """Trace the cells without features (all with ``force``); the numbers of cells that were traced
    and that have features now.

    ``run_recorded``: arguments from the dataset's card are used. Raises UsageError for a dataset
    that is shipped, or one with arguments that are not to be used.
    """
    place = found.folder / FEATURES
    done = 0
    wanted = [
        cell
        for cell in found.cells
        if (force or not exists(place / f"{cell.key}.json")) and not found.space(cell).requires
    ]
    if wanted and is_shipped(found.folder):
        raise UsageError(
            f"{found.folder} is shipped with autotune and is not changed; copy it first "
            f"with: autotune dataset import {shlex.quote(str(found.folder))}",
            code="dataset.shipped",
        )
    if not run_recorded:
        _refuse_arguments(wanted)
    for cell in wanted:
        path = place / f"{cell.key}.json"
        words = TargetRequest(
            app=cell.app,
            input=cell.input or None,
            ranks=cell.ranks,
            cluster=cell.cluster,
            mpi=mpi,
            command="dataset trace",
        )
        target = find_target(words)
        if cell.args is not None:
            app = with_args(target.app, cell.input or target.app.usual_input, cell.args)
            target = dataclasses.replace(target, app=app)
        features, _ = traced_features(target, guard=guard)
        place.mkdir(exist_ok=True)
        features.portable().save(path)
        done += 1
    have = sum(is_file(place / f"{cell.key}.json") for cell in found.cells)
    return done, have


def _refuse_arguments(cells: Sequence[Cell]) -> None:
    given = [cell for cell in cells if cell.args is not None]
    if given:
        lines = "".join(f"\n  {c.key}: {c.app} {list(c.args or ())!r:.400}" for c in given[:8])
        raise UsageError(
            "the dataset's card gives arguments for the programs of "
            f"{count(len(given), 'cell')}:{lines}\nNothing was run. Check these arguments; "
            "if you want to run them here, add --run-recorded",
            code="dataset.untrusted_arguments",
        )
