"""Variant over: basic MPI with several ranks per process (Martin 2018, 5.2.2).

Every rank has its own block and sends all its faces, even to ranks of the same process.
"""

from __future__ import annotations

from runner.programs.apps.common import regions as common_regions
from runner.programs.apps.common.ranks import GraphSolver
from runner.programs.apps.jacobi3d import regions
from runner.programs.apps.jacobi3d.block import Block
from runner.programs.apps.jacobi3d.mated import BlockSolver, Part
from runner.runtimes import mate

GRAPH = mate.Graph("jacobi3d-over")


@GRAPH.region(depends=["unpack*"], compiled=True)
def compute(part: Part, i: int) -> None:
    regions.compute(part, i)


@GRAPH.region(depends=["compute"], compiled=True)
def exchange(part: Part, i: int) -> None:
    common_regions.receive(part, i)
    common_regions.pack(part, i)
    common_regions.send(part, i)


@GRAPH.region(depends=["exchange"], compiled=True)
def unpack(part: Part, i: int) -> None:
    common_regions.unpack(part, i)


class OverDecomposition(GraphSolver, BlockSolver):
    """Ranks that share nothing; while one waits for messages, another computes."""

    graph = GRAPH

    def _part(self, local: int) -> Part:
        process, layout = self._comm.rank, self._layout
        block = Block(layout.size, *layout.part(process, local), self._cache_block)
        self.blocks.append(block)
        faces = layout.faces(process, local)
        remote = [(f.axis, f.side, self._rank(f)) for f in faces]
        return Part(block, block.whole, remote, (), self._config.split, layout.padding)
