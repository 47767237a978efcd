"""What a measuring campaign would measure, as a document."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.datasets.plan import ExplorationPlan, PreparedCell
from autotune.document import Document
from autotune.json_types import Number


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
