"""Variant overlap, written by hand: messages travel while the inner cells are computed by tiles.

An iteration starts by sending the faces of the previous field. Inner cells, which need no ghosts,
are computed in tiles, with a call into MPI after each tile. Then the process waits for the messages
and computes the cells at the cut faces. Martin 2018, 5.2.3 has the other order: the tiles at the
faces first, with one message per tile and face. Here the number of messages does not grow with the
tiles.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from runner.programs.apps.common.box import cut, split_phase
from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.meter import Meter
from runner.programs.apps.jacobi3d.problem import DEPTH
from runner.programs.apps.jacobi3d.variant_mpi import BasicMPI


class OverlapMPI(BasicMPI):
    """One block per rank, its inner cells in ``layout.local`` tiles."""

    def __init__(self, comm: Any, layout: Layout, cache_block: int) -> None:
        tiles = layout.local
        super().__init__(comm, dataclasses.replace(layout, local=(1, 1, 1)), cache_block)
        # z first: its slabs have whole rows, and the rest for x is smallest.
        faces = [(axis, side) for axis, side, _ in reversed(self._halo.cut)]
        inner, slabs = split_phase(self._block.whole, faces, DEPTH)
        self._inner = [self._block.stencil(box) for box in cut(inner, tiles)]
        self._edges = [self._block.stencil(box) for box in slabs]

    def _iterate(self, meter: Meter) -> None:
        block, halo = self._block, self._halo
        requests = halo.start(meter)
        for tile in self._inner:
            meter.run(tile[block.current])
            halo.progress(requests, meter)
        halo.finish(requests, meter)
        for slab in self._edges:
            meter.run(slab[block.current])
        block.current = 1 - block.current
