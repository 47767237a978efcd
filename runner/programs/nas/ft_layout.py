"""The layouts of FT's grid, and its transposition between the ranks.

Ranks form a grid of ``np1`` x ``np2``. There are three layouts of the points. In each, a rank holds
all points of the first axis: 1 = x y z, 2 = y x z (or still x y z, if np1 = 1), 3 = z x y. The
second axis is divided by np1, the third by np2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.programs.nas.common.kernel import Stopwatch
from runner.runtimes.core.kernels import load, scalars

Field = NDArray[np.complex128]
Shape = tuple[int, int, int]


def rank_grid(ranks: int, nz: int) -> tuple[int, int]:
    """(np1, np2) as the original chooses them: slabs as long as there are enough planes."""
    return (1, ranks) if ranks <= nz else (nz, ranks // nz)


class Layout:
    """Shapes of the three layouts on one rank, the fastest axis first, and the rank's position.

    ``first_start`` and ``third_start`` are the first x, y and z of this rank in layouts 1 and 3.
    ``third_axes`` says which axes those of layout 3 are. With one rank all layouts are the same.
    """

    def __init__(self, points: Shape, grid: tuple[int, int], rank: int) -> None:
        nx, ny, nz = points
        np1, np2 = grid
        me1, me2 = divmod(rank, np2)
        self.grid, self.place = grid, (me1, me2)
        self.points = points
        second: Shape = (0, 1, 2) if np1 == 1 else (1, 0, 2)
        self.third_axes: Shape = (0, 1, 2) if np1 == np2 == 1 else (2, 0, 1)
        self.shapes: list[Shape] = [
            (points[a], points[b] // np1, points[c] // np2)
            for a, b, c in ((0, 1, 2), second, self.third_axes)
        ]
        self.first_start = (0, me1 * ny // np1, me2 * nz // np2)
        self.third_start = (me1 * nx // np1, me2 * ny // np2, 0)


class Turner:
    """The transpositions of one rank, on flat fields that are never reallocated.

    Each is collective over a row or column of ranks: a local transposition, one ``Alltoall``, and a
    local rearrangement. ``source`` is overwritten, the result is in ``target``.
    """

    def __init__(self, comm: Any, layout: Layout, mpi: Stopwatch) -> None:
        me1, me2 = layout.place
        self._layout, self._mpi = layout, mpi
        self._np1, self._np2 = layout.grid
        self._among2 = comm.Split(me1, me2)
        self._among1 = comm.Split(me2, me1)

    def slabs_to_third(self, source: Field, target: Field) -> Callable[[], None]:
        """Layout 2 -> 3 if np1 = 1: x and y count as one axis."""
        n1, n2, n3 = self._layout.shapes[1]
        return self._across(source, target, (n1 * n2, 1, n3))

    def third_to_slabs(self, source: Field, target: Field) -> Callable[[], None]:
        n1, n2, n3 = self._layout.shapes[2]
        return self._across(source, target, (n1, 1, n2 * n3))

    def second_to_third(self, source: Field, target: Field) -> Callable[[], None]:
        return self._across(source, target, self._layout.shapes[1])

    def third_to_second(self, source: Field, target: Field) -> Callable[[], None]:
        return self._across(source, target, self._layout.shapes[2])

    def first_to_second(self, source: Field, target: Field) -> Callable[[], None]:
        return self._along(source, target, self._layout.shapes[0], self._layout.shapes[1])

    def second_to_first(self, source: Field, target: Field) -> Callable[[], None]:
        return self._along(source, target, self._layout.shapes[1], self._layout.shapes[0])

    def _across(self, source: Field, target: Field, shape: Shape) -> Callable[[], None]:
        """Swap the first and the third axis; the third is divided by np2."""
        parts, (n1, n2, n3) = self._np2, shape
        local = transposition(source, target, shape)
        pieces = source.reshape(parts, n1 // parts * n2, n3).swapaxes(0, 1)
        whole = target.reshape(n1 // parts * n2, parts, n3)

        def turn() -> None:
            local()
            with self._mpi:
                self._among2.Alltoall(target, source)
            whole[...] = pieces

        return turn

    def _along(
        self, source: Field, target: Field, shape: Shape, result: Shape
    ) -> Callable[[], None]:
        """Swap the first and the second axis; the second is divided by np1."""
        parts, (d1, d2, d3) = self._np1, result
        n1, n2, n3 = shape
        local = transposition(source, target, (n1, 1, n2 * n3))
        pieces = source.reshape(parts, d2, d3, d1 // parts).transpose(2, 1, 0, 3)
        whole = target.reshape(d3, d2, parts, d1 // parts)

        def turn() -> None:
            local()
            with self._mpi:
                self._among1.Alltoall(target, source)
            whole[...] = pieces

        return turn


def transposition(source: Field, target: Field, shape: Shape) -> Callable[[], None]:
    """A call that swaps the first and the third axis on this rank; the kernel is bound."""
    return load("runner.programs.nas.ft_kernels").bind(
        "transpose", source.view(np.float64), target.view(np.float64), scalars(list(shape))
    )
