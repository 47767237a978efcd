"""The choices of all parameters of a space in one row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from autotune.strategies.codec import Codec

Floats = NDArray[np.float64]
Matrix = NDArray[np.intp]


class Levels:
    """The choices of all parameters in one row, parameter after parameter.

    ``starts`` has the index of each parameter's first choice, ``owner`` the parameter of each
    choice. ``free`` marks the choices that may have an effect: all except unset ones.
    """

    def __init__(self, codec: Codec) -> None:
        self.starts: Matrix = np.concatenate(([0], np.cumsum(codec.sizes)[:-1])).astype(np.intp)
        self.total = int(codec.sizes.sum())
        self.owner = np.repeat(np.arange(len(codec.sizes)), codec.sizes)
        self.free = np.ones(self.total, dtype=np.bool_)
        self.free[self.starts[codec.optional]] = False

    def places(self, codes: Matrix) -> Matrix:
        """The indices of the choices of settings, shape (settings, parameters)."""
        return codes + self.starts

    def one_hot(self, codes: Matrix, out: Floats | None = None) -> Floats:
        """The settings as one-hot vectors, shape (settings, choices of all parameters).

        They are written to ``out`` if given.
        """
        vectors = np.zeros((len(codes), self.total)) if out is None else out
        if out is not None:
            vectors.fill(0.0)
        vectors[np.arange(len(codes))[:, None], self.places(codes)] = 1.0
        return vectors
