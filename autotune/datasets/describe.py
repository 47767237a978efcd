"""The description of a dataset by cell: sizes, noise, possible gain, null cells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from autotune.datasets.card import Cell
from autotune.datasets.dataset import Dataset
from autotune.datasets.replay import Landscape
from autotune.document import Document, Omitted
from autotune.stats import noise_of
from autotune.targets.rows import MpiChoiceRow
from runner.files.paths import is_file

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class CellWords:
    """One cell.  ``gain`` (that of OPUB) and ``null`` are computed for grids only, else None.

    ``best`` is the setting with the smallest median ratio ``best_ratio``, luck included.  ``noise``
    is the robust relative scatter of one default run within its block.  ``share_ok``: share of the
    runs that are ok.  ``unguarded``: number of blocks that were measured without the guard.
    """

    key: str
    app: str
    input: str
    ranks: int
    cluster: str
    split: str
    settings: int
    runs: int
    rejected: int
    blocks: int
    blocks_planned: int
    complete: bool
    share_ok: float
    default_s: float | None
    noise: float | None
    best: str
    best_ratio: float | None
    worst_ratio: float | None
    gain: float | None
    null: bool | None
    """True if nothing beats the default."""
    unguarded: int = 0


class Description(Document):
    """All cells, and the size of the files in bytes."""

    schema_: Literal["autotune-dataset-1"] = Field(default="autotune-dataset-1", alias="schema")
    name: str
    kind: str
    bytes: int
    runs: int
    cells: list[CellWords]


class ExploredDataset(Description):
    """A dataset, as far as a campaign has measured it."""

    finished: bool
    folder: str
    mpi_choice: Omitted[MpiChoiceRow] = None
    """Why this MPI library was taken."""


def describe(dataset: Dataset) -> Description:
    """Read all shards; raises UsageError if the dataset is damaged."""
    cells = [_cell(dataset, cell) for cell in dataset.cells]
    size = sum(f.stat().st_size for f in dataset.folder.rglob("*") if is_file(f))
    runs = sum(cell.runs for cell in cells)
    return Description(name=dataset.name, kind=dataset.kind, bytes=size, runs=runs, cells=cells)


def _cell(dataset: Dataset, cell: Cell) -> CellWords:
    runs = dataset.runs(cell)
    default = runs[(runs["setting"] == 0) & (runs["state"] == "ok")]
    matrix = dataset.matrix(cell)
    finite = matrix[matrix["ratio_median"].map(math.isfinite)]
    others = finite[(finite["index"] != 0) & (finite["state"] == "ok")]
    best = others.sort_values("ratio_median", kind="stable").iloc[0] if len(others) else None
    landscape = Landscape(dataset, cell.key) if dataset.kind == "grid" and len(runs) else None
    complete = (
        landscape.complete if landscape else bool(len(runs)) and bool((matrix["n"] > 0).all())
    )
    grid = landscape if landscape is not None and landscape.complete else None
    return CellWords(
        key=cell.key,
        app=cell.app,
        input=cell.input,
        ranks=cell.ranks,
        cluster=cell.cluster,
        split=cell.split,
        settings=len(set(dataset.representatives(cell))),
        runs=len(runs),
        rejected=cell.rejected,
        blocks=int(runs["block"].nunique()),
        blocks_planned=cell.blocks,
        complete=complete,
        share_ok=float((runs["state"] == "ok").mean()) if len(runs) else 0.0,
        default_s=float(default["value_s"].median()) if len(default) else None,
        noise=_noise(default),
        best=dataset.settings(cell)[int(best["index"])].key if best is not None else "",
        best_ratio=float(best["ratio_median"]) if best is not None else None,
        worst_ratio=float(finite["ratio_median"].max()) if len(finite) else None,
        gain=grid.best.gain if grid else None,
        null=grid.null if grid else None,
        unguarded=len(cell.unguarded),
    )


def _noise(default: pd.DataFrame) -> float | None:
    ratios = [float(ratio) for ratio in default["ratio"] if math.isfinite(ratio)]
    return noise_of(ratios) if len(ratios) > 1 else None
