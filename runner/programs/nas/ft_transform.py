"""The one-dimensional transforms of FT along an axis of a field."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from runner.programs.nas.ft_layout import Field, Shape
from runner.runtimes.core.kernels import load, scalars

CELL = 32
"""Doubles of scratch per element of a line; the same number as in the kernels."""


def frequencies(n: int) -> list[int]:
    """The frequency in each place after the transform in place of length n = 2^k.

    A step of radix r leaves the frequencies f = m (mod r) in the m-th part.
    """
    if n == 1:
        return [0]
    radix = 4 if n >= 4 else 2
    part = frequencies(n // radix)
    return [m + radix * f for m in range(radix) for f in part]


def roots_of_unity(n: int, direction: int) -> NDArray[np.float64]:
    """exp(direction 2 pi i t / n), t < n, as pairs of doubles."""
    angles = direction * 2.0 * np.pi / n * np.arange(n)
    roots = np.empty((n, 2))
    roots[:, 0], roots[:, 1] = np.cos(angles), np.sin(angles)
    # The kernels take the sign of i from the quarter turn.
    roots[n // 4] = (0.0, direction)
    return roots.reshape(-1)


class Transforms:
    """Transforms in both directions, for lines of some lengths, all powers of two from 4 on."""

    def __init__(self, lengths: set[int]) -> None:
        self._order = {n: scalars(frequencies(n)) for n in lengths}
        self._scratch = np.zeros(CELL * max(lengths))
        self._roots = {(n, d): np.empty(2 * n) for n in lengths for d in (1, -1)}
        self.make_roots()

    def make_roots(self) -> None:
        """Fill the tables; the timed part does this again, as in the original."""
        for (n, direction), roots in self._roots.items():
            roots[...] = roots_of_unity(n, direction)

    def along(
        self, axis: int, direction: int, shape: Shape, source: Field, target: Field
    ) -> Callable[[], None]:
        """The transform of all lines of a field along an axis (0 = the fastest one)."""
        n1, n2, n3 = shape
        n = shape[axis]
        if axis == 0:
            name, state = "transform_rows", [n, n2 * n3]
        elif axis == 1:
            name, state = "transform_columns", [n, n1, n1, n3, n1 * n2]
        else:
            name, state = "transform_columns", [n, n1, n1 * n2, n2, n1]
        return load("runner.programs.nas.ft_kernels").bind(
            name,
            source.view(np.float64),
            target.view(np.float64),
            self._roots[n, direction],
            self._scratch,
            self._order[n],
            scalars(state),
        )
