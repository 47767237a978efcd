"""One rank of Cannon's algorithm on MATE, and the blocks of A and B in its process."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from runner.programs.apps.cannon.matrices import Layout, Matrix
from runner.runtimes import mate
from runner.runtimes.core import blas, library


def group_of(layout: Layout) -> int:
    """Number of steps in an iteration of the graph.

    Each rank of a line receives one block from another process. So an iteration has as many steps
    as a line has ranks; if both A and B arrive, the greatest common divisor. Without messages it is
    a whole multiplication.
    """
    rows, columns = layout.processes
    lengths = [layout.local[1]] * (columns > 1) + [layout.local[0]] * (rows > 1)
    return math.gcd(*lengths) if lengths else layout.blocks


@dataclass(frozen=True)
class Ring:
    """The blocks of a factor in a process: ``lines`` lines of ``length`` ranks.

    A line is a row of blocks for A, a column for B. Blocks move by one rank per step without
    copies: a line has ``slots`` places in memory, block ``n`` is at ``n % slots``, and the rank at
    place ``p`` multiplies block ``p + s`` in step ``s``. The first ``length`` blocks exist at the
    start; if ``remote``, the others arrive from another process, with memory for two iterations of
    them. If not, the blocks rotate within the process.
    """

    lines: int
    length: int
    remote: bool
    group: int

    @property
    def slots(self) -> int:
        return self.length + 2 * self.group * self.remote

    def memory(self, width: int) -> Matrix:
        """Room for all blocks: [line and slot][row][column]."""
        return np.zeros((self.lines * self.slots, width, width))

    def reach(self, place: int) -> int:
        """Number of steps of an iteration for which the rank has the blocks in advance."""
        return min(self.group, self.length - place) if self.remote else self.group


class Blocks:
    """The blocks of A and B, shared by the ranks of a process."""

    def __init__(self, layout: Layout) -> None:
        rows, columns = layout.local
        self.group = group_of(layout)
        self.ring_a = Ring(rows, columns, layout.processes[1] > 1, self.group)
        self.ring_b = Ring(columns, rows, layout.processes[0] > 1, self.group)
        self.a = self.ring_a.memory(layout.width)
        self.b = self.ring_b.memory(layout.width)


class Part:
    """One rank: block (x, y) of C. The public attributes are for compiled regions."""

    ctx: mate.Context

    def __init__(self, layout: Layout, process: int, local: int, blocks: Blocks, split: int):
        """``split``: number of messages in which a block is sent."""
        rows, columns = layout.local
        i, j = divmod(local, columns)
        ring_a, ring_b = blocks.ring_a, blocks.ring_b
        first_x, first_y = layout.first(process)
        self.x, self.y = first_x + i, first_y + j
        self.dgemm = blas.dgemm()
        self.group = blocks.group
        self.a, self.b = blocks.a, blocks.b
        self.flat_a, self.flat_b = (m.reshape(len(m), -1) for m in (blocks.a, blocks.b))
        self.c: Matrix = np.zeros((layout.width, layout.width))
        self.place_a, self.place_b = j, i
        self.length_a, self.length_b = ring_a.length, ring_b.length
        self.ring_a, self.ring_b = ring_a.slots, ring_b.slots
        self.first_a, self.first_b = i * ring_a.slots, j * ring_b.slots
        """Where the rank's lines start in the memory."""
        self.ready = min(ring_a.reach(j), ring_b.reach(i))
        """Number of steps of an iteration that need no block arriving during it."""
        row, column = layout.place(process)
        self.target_a = self.source_a = self.target_b = self.source_b = -1
        if ring_a.remote and j < self.group:
            self.target_a, self.source_a = (
                layout.process_at(row, column + d) * layout.local_count + local for d in (-1, 1)
            )
        if ring_b.remote and i < self.group:
            self.target_b, self.source_b = (
                layout.process_at(row + d, column) * layout.local_count + local for d in (-1, 1)
            )
        pieces = mate.pieces(self.flat_a[0], split)
        self.cuts = [0, *np.cumsum([len(piece) for piece in pieces]).tolist()]
        self.near = sorted(
            {i * columns + k for k in range(columns) if ring_a.remote}
            | {k * columns + j for k in range(rows) if ring_b.remote} - {local}
        )
        """Local ranks of the same lines, if they receive blocks."""
        self.kernels_s = np.zeros(3)
        """Seconds of the rank's products; wall and CPU seconds of the sampled ones."""
        self._layout = layout

    def reset(self) -> None:
        """Put the factors in their places and set the product to zero.

        The future worker touches its memory here, including that of the BLAS library.
        """
        a, b = self.a[self.first_a + self.place_a], self.b[self.first_b + self.place_b]
        a[:] = self._layout.a_block(self.x, self.y)
        b[:] = self._layout.b_block(self.x, self.y)
        library.add_product(self.dgemm, a, b, self.c)
        self.c.fill(0.0)
        self.kernels_s.fill(0.0)
