"""The ranks of the variants on MATE: cells with the data for their update, and their blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runner.programs.apps.common import ranks as common_ranks
from runner.programs.apps.common.box import Box
from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.meter import RunTimes
from runner.programs.apps.jacobi3d.block import Block
from runner.programs.apps.jacobi3d.faces import Faces
from runner.runtimes import mate


class Part(common_ranks.Part):
    """One rank: its cells ``box`` of a block, and the messages over its ``remote`` faces."""

    def __init__(
        self,
        block: Block,
        box: Box,
        remote: Sequence[tuple[int, int, int]],
        local: Sequence[int],
        split: int,
        padding: int = 1,
    ) -> None:
        faces = Faces(block, box, remote, padding)
        super().__init__(block.fields, [faces], block.stencil(box), local, split)
        self.cells = tuple(field.reshape(-1) for field in block.fields)
        self.geometry, self.weights = block.geometry(box), block.weights


class BlockSolver(common_ranks.MateSolver):
    """The solver of one process; :meth:`solve` may be called again after the blocks are reset.

    Ranks put their blocks in ``blocks``.
    """

    def __init__(self, comm: Any, layout: Layout, cache_block: int, config: mate.Config) -> None:
        self._cache_block = cache_block
        self.blocks: list[Block] = []
        super().__init__(comm, layout, config)

    def solve(self, iterations: int) -> RunTimes:
        """Time the iterations on this process, after a barrier."""
        times = self.run(iterations)
        for block in self.blocks:
            block.current = iterations % 2
        return times


class Hierarchical(BlockSolver):
    """The ranks of a process share its block; only faces to other processes are messages."""

    def _part(self, local: int) -> Part:
        process, layout = self._comm.rank, self._layout
        if not self.blocks:
            self.blocks.append(Block(layout.size, *layout.block(process), self._cache_block))
        block = self.blocks[0]
        remote, near = self._behind(local)
        box = block.box_of(*layout.part(process, local))
        return Part(block, box, remote, near, self._config.split, layout.padding)
