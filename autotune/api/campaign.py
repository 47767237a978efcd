"""The programs of a measuring campaign, and what it would measure, as a document."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from autotune.api.target import find_target
from autotune.datasets.plan import ExplorationPlan, PlanCell, PreparedCell, with_args
from autotune.document import Document
from autotune.json_types import Number
from autotune.notes import Say
from autotune.targets.request import TargetRequest
from autotune.targets.target import Target


def cell_target(cell: PlanCell, mpi: str | None, say: Say) -> Target:
    """The target of a plan's cell; ``say`` gets notes, first on its MPI library.

    Raises UsageError for a space that the target cannot have, and for everything else that is
    wrong with it.
    """
    request = TargetRequest(
        app=cell.app,
        input=cell.input or None,
        ranks=cell.ranks,
        cluster=cell.cluster,
        mpi=mpi,
        command="explore",
    )
    target = find_target(request, say)
    app = with_args(target.app, cell.input or None, cell.args)
    target = dataclasses.replace(target, app=app)
    # Refuses a space impossible for the program or its ranks; prepare reads it again.
    target.space(cell.space)
    return target


class PlannedCell(Document):
    """A cell that would be measured, and for how long."""

    cell: str
    settings: int
    runs: int
    blocks: int
    planned_s: Number


class PlannedDataset(Document):
    """What a plan would measure."""

    plan: str
    kind: str
    cells: list[PlannedCell]


def planned_dataset(plan: ExplorationPlan, cells: Sequence[PreparedCell]) -> PlannedDataset:
    """The cells of a plan as a document."""
    rows = [
        PlannedCell(
            cell=cell.plan.key,
            settings=len(cell.settings),
            runs=cell.runs,
            blocks=cell.cut.blocks,
            planned_s=cell.planned_s,
        )
        for cell in cells
    ]
    return PlannedDataset(plan=plan.name, kind=plan.kind, cells=rows)
