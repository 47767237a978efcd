"""The update of a rank, a task or a block, in the dialect of compiled regions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.programs.apps.common.meter import SAMPLE
from runner.programs.apps.jacobi3d import stencil

if TYPE_CHECKING:
    from runner.programs.apps.jacobi3d.mated import Part
    from runner.programs.apps.jacobi3d.variant_tarragon import Cells
    from runner.programs.apps.jacobi3d.variant_tpod import BlockTask


def compute(part: Part | Cells | BlockTask, i: int) -> None:
    """Update the cells from field ``i % 2`` into the other field."""
    sampled = i % SAMPLE == 0
    cpu = part.ctx.cpu_seconds() if sampled else 0.0
    begin = part.ctx.seconds()
    stencil.update(part.cells[i % 2], part.cells[(i + 1) % 2], part.geometry, part.weights)
    spent = part.ctx.seconds() - begin
    part.kernels_s[0] += spent
    if sampled:
        part.kernels_s[1] += spent
        part.kernels_s[2] += part.ctx.cpu_seconds() - cpu
