"""Variant tarragon: parts of a process's block as a graph of tasks (Cicotti 2011, chapter 5)."""

from __future__ import annotations

from typing import Any

from runner.programs.apps.common import grid_tasks as common_grid_tasks
from runner.programs.apps.common.box import Box
from runner.programs.apps.common.grid_tasks import Remote, pack, unpack
from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.meter import RunTimes
from runner.programs.apps.jacobi3d import regions
from runner.programs.apps.jacobi3d.block import Block
from runner.programs.apps.jacobi3d.problem import DEPTH
from runner.runtimes import tarragon


class Cells(common_grid_tasks.Cells):
    """The cells ``box`` of a block."""

    def __init__(self, block: Block, box: Box, remote: Remote, padding: int, steps: int) -> None:
        super().__init__(block.fields, box, remote, DEPTH, steps, padding=padding)
        self.cells = tuple(field.reshape(-1) for field in block.fields)
        self.geometry, self.weights = block.geometry(box), block.weights

    def compute(self, step: int) -> None:
        """Update the cells from field ``step % 2`` into the other field."""
        if step > 0:
            unpack(self, step - 1, step % 2)
        regions.compute(self, step)
        pack(self, step, (step + 1) % 2)


class AsGraph(common_grid_tasks.AsGraph):
    """The solver of one process; :meth:`solve` may be called again after the block is reset."""

    def __init__(
        self, comm: Any, layout: Layout, cache_block: int, config: tarragon.Config
    ) -> None:
        super().__init__(comm, layout, config)
        self.blocks = [Block(layout.size, *layout.block(comm.rank), cache_block)]

    def task(self, local: int, remote: Remote, steps: int) -> Cells:
        (block,) = self.blocks
        box = block.box_of(*self._layout.part(self._comm.rank, local))
        return Cells(block, box, remote, self._layout.padding, steps)

    def solve(self, iterations: int) -> RunTimes:
        """Time the iterations on this process, after a barrier."""
        times = self.run(iterations)
        self.blocks[0].current = iterations % 2
        return times
