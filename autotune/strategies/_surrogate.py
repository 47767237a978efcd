"""Surrogate of the genetic search: it ranks offspring before any of them is run.

It is a Gaussian process on the log ratio. Its kernel is ``exp(c (k - 1))``, where k is the mean
over the parameters of the similarity of two settings in each (1 = same level; levels of an ordered
parameter are more similar the closer they are). Expanded, this is a sum of main effects and of
interactions of every order with decreasing weight.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from autotune.strategies._codec import Codec, Codes

Single = np.float32  # Enough to rank offspring, at half the time.
Vector = NDArray[np.float32]

COUPLING = 1.5
"""The c of the kernel: near 0 the surrogate has main effects only."""
SCALE = 0.3
"""Prior standard deviation of log ratios over the space."""
NOISE = 0.03
"""Standard deviation of one measured log ratio."""
WORST = 0.5
"""Loss clipping: the log ratio used for everything slower, failures included."""
REACH = 1.5
"""Distance, in levels of an ordered parameter, over which the similarity falls to 1/e."""
_KEEP = 200
_FULL = 400

_BLAS = ThreadpoolController()


def _one_thread() -> Any:
    """A context without BLAS threads.

    For such small matrices, waking the threads costs ten times more than the arithmetic, and they
    still spin while the next run is measured.
    """
    return _BLAS.limit(limits=1, user_api="blas")


class Surrogate:
    """The surrogate; it is told (codes, ratio) one by one and predicts expected improvements.

    The cost of a prediction grows with the number of settings in the model. When it reaches 400,
    only the better half stays.
    """

    def __init__(self, codec: Codec) -> None:
        self._starts = np.concatenate(([0], np.cumsum(codec.sizes)[:-1]))
        self._alike = _alike(codec)
        self._profiles = np.zeros((len(self._alike), _FULL), Single)
        self._whiten = np.zeros((_FULL, _FULL), Single)  # The inverse of the Cholesky factor.
        self._codes: list[Codes] = []
        self._logs: list[float] = []

    def add(self, codes: Codes, ratio: float) -> None:
        """Add one setting; ``ratio`` is T / T_default, infinite if the setting failed."""
        if len(self._codes) == _FULL:
            self._forget()
        n = len(self._codes)
        place = np.array([codes])
        with _one_thread():
            row = self._whitened(self._cross(place).T)[:, 0]
            rest = math.sqrt(max(SCALE**2 + NOISE**2 - float(row @ row), NOISE**2))
            self._whiten[n, :n] = -(row @ self._whiten[:n, :n]) / rest
        self._whiten[n, n] = 1 / rest
        self._profiles[:, n] = self._alike[place + self._starts].sum(axis=(0, 1))
        self._codes.append(codes)
        self._logs.append(min(math.log(ratio), WORST))

    def improvement(self, candidates: NDArray[np.intp]) -> Vector:
        """Expected improvement of the log ratio for each row of codes, shape (rows,)."""
        n = len(self._codes)
        if not n:
            return np.zeros(len(candidates), Single)
        logs = np.array(self._logs, Single)
        with _one_thread():
            solved = self._whitened(np.vstack([self._cross(candidates), logs]).T)
            mean = solved[:, :-1].T @ solved[:, -1]
        variance = SCALE**2 - np.einsum("ij,ij->j", solved[:, :-1], solved[:, :-1])
        deviation = np.sqrt(np.maximum(variance, 1e-12))
        gap = logs.min() - mean
        z = gap / deviation
        density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
        return np.asarray(gap * ndtr(z) + deviation * density, dtype=Single)

    def _cross(self, codes: NDArray[np.intp]) -> Vector:
        """Covariances: one row per row of codes, one column per setting that was added."""
        chosen = np.zeros((len(codes), len(self._alike)), Single)
        chosen[np.arange(len(codes))[:, None], codes + self._starts] = 1.0
        likeness = chosen @ self._profiles[:, : len(self._codes)]
        return np.asarray(SCALE**2 * np.exp(COUPLING * (likeness - 1)), dtype=Single)

    def _whitened(self, right: Vector) -> Vector:
        n = len(self._codes)
        return np.asarray(self._whiten[:n, :n] @ right, dtype=Single)

    def _forget(self) -> None:
        best = sorted(range(_FULL), key=self._logs.__getitem__)[:_KEEP]
        kept = [(self._codes[i], self._logs[i]) for i in sorted(best)]
        self._codes, self._logs = [], []
        for codes, log in kept:
            self.add(codes, math.exp(log))


def _alike(codec: Codec) -> Vector:
    """Similarity of two levels of a parameter, in blocks, divided by the number of parameters."""
    total = int(codec.sizes.sum())
    blocks = np.zeros((total, total))
    start = 0
    for size, axis in zip(codec.sizes.tolist(), codec.axis, strict=True):
        alike = np.eye(size)
        if axis:
            place = np.arange(len(axis))
            alike[np.ix_(axis, axis)] = np.exp(-np.abs(place[:, None] - place) / REACH)
        stop = start + size
        blocks[start:stop, start:stop] = alike
        start = stop
    return (blocks / len(codec.sizes)).astype(Single)
