"""Variant over: basic MPI with several ranks per process (Martin 2018, 5.2.2).

Every rank has its own block and sends all its faces, also to ranks of its own process.
"""

from __future__ import annotations

from runner import mate
from runner.apps.jacobi3d.block import Block
from runner.apps.jacobi3d.mated import Mated, Part


class OverDecomposed(Mated):
    """Ranks that share nothing; while one waits for messages, another computes."""

    def _part(self, local: int) -> Part:
        process, layout = self._comm.rank, self._layout
        block = Block(layout.size, *layout.part(process, local), self._cache_block)
        self.blocks.append(block)
        faces = layout.faces(process, local)
        remote = [(f.axis, f.side, self._rank(f)) for f in faces]
        return Part(block, block.whole, remote, (), self._config.split, self._meters)

    async def _iterate(self, ctx: mate.Context, part: Part, iterations: int) -> None:
        for i in range(iterations):
            part.compute(i % 2)
            await part.exchange((i + 1) % 2)
