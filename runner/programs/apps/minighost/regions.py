"""The step of a rank, a task or a block, in the dialect of compiled regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.common.faces import Field
from runner.programs.apps.common.meter import SAMPLE
from runner.programs.apps.minighost import stencil
from runner.programs.apps.minighost.domain import Domain, Tables


class CellTables:
    """The data of a rank, a task or a block for :func:`advance`; arrays as in :mod:`.stencil`."""

    ctx: Any
    kernels_s: Field
    """Seconds of the kernels; wall and CPU seconds of the sampled steps."""
    cells: tuple[Field, Field]
    """Both fields as arrays of one dimension."""
    geometry: list[NDArray[np.uint64]]
    """Of each group of variables."""
    walls: NDArray[np.uint64]
    losses: list[Field]

    def give_cells(self, domain: Domain, tables: Sequence[Tables]) -> None:
        """Assign a box of cells; ``tables`` are those of the box, for each group of variables."""
        first, second = domain.fields
        self.cells = first.reshape(-1), second.reshape(-1)
        self.geometry = [geometry for geometry, _, _ in tables]
        self.walls = tables[0][1]
        self.losses = [losses for _, _, losses in tables]


def advance(part: CellTables, step: int, field: int, group: int) -> None:
    """Boundary account and stencil of a group of variables, from this field."""
    is_sample = step % SAMPLE == 0
    cpu = part.ctx.cpu_seconds() if is_sample else 0.0
    begin = part.ctx.seconds()
    old, new = part.cells[field], part.cells[1 - field]
    stencil.outflow(old, part.geometry[group], part.walls, part.losses[group])
    stencil.sweep(old, new, part.geometry[group])
    duration_s = part.ctx.seconds() - begin
    part.kernels_s[0] += duration_s
    if is_sample:
        part.kernels_s[1] += duration_s
        part.kernels_s[2] += part.ctx.cpu_seconds() - cpu
