"""Variant tpod: the blocks of a process as tasks that exchange their own faces (Barrett et al.)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runner.programs.apps.common.box import Box
from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.meter import RunTimes
from runner.programs.apps.common.tpod import Faces, Grids, Meeting, TpodSolver, exchange
from runner.programs.apps.jacobi3d import regions
from runner.programs.apps.jacobi3d.block import Block
from runner.programs.apps.jacobi3d.problem import DEPTH
from runner.runtimes import tpod


class BlockTask(Faces):
    """The cells ``box`` of a process's block."""

    def __init__(self, solver: AsBlocks, box: Box, meetings: Sequence[Meeting]) -> None:
        super().__init__(solver, box, meetings)
        (block,) = solver.blocks
        self.cells = tuple(field.reshape(-1) for field in block.fields)
        self.geometry, self.weights = block.geometry(box), block.weights


class InnerTask(BlockTask):
    """Cells without messages."""

    def step(self, step: int) -> None:
        """Update the cells."""
        regions.compute(self, step)


class OuterTask(BlockTask):
    """Cells with messages."""

    def step(self, step: int) -> None:
        """Exchange the faces, and update the cells."""
        exchange(self, step, step % 2, 0, 1)
        regions.compute(self, step)


class AsBlocks(TpodSolver):
    """The solver of one process; :meth:`solve` may be called again after the block is reset."""

    def __init__(self, comm: Any, layout: Layout, cache_block: int, config: tpod.Config) -> None:
        block = Block(layout.size, *layout.block(comm.rank), cache_block)
        self.blocks = [block]
        grids = Grids(block.fields, DEPTH, padding=layout.padding)
        super().__init__(comm, layout, config, grids, block.whole)

    def task(self, box: Box, meetings: list[Meeting]) -> Faces:
        return (OuterTask if meetings else InnerTask)(self, box, meetings)

    def solve(self, iterations: int) -> RunTimes:
        """Time the iterations on this process, after a barrier."""
        times = self.run(iterations, 0)
        self.blocks[0].current = iterations % 2
        return times
