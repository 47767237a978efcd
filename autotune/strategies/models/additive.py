"""Surrogate with additive effects of levels and of pairs, each parameter shrunk separately.

The log ratio of a setting is the sum of one effect per changed parameter and one per pair of them.
The default has the effect 0. The size of a parameter's effects is learned from the data (empirical
Bayes). So other levels of a parameter that matters are expected to have effects, too, and those of
an irrelevant parameter are not. The mean effect of a change, usually a loss, is also learned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotri
from scipy.special import ndtr
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from autotune.strategies.codec import Codec
from autotune.strategies.levels import Floats, Levels, Matrix

_BLAS = ThreadpoolController()


@dataclass(frozen=True)
class Prior:
    """The prior, before anything is measured; all in log ratios."""

    total: float = 0.5
    """Standard deviation of the effects of all parameters together.

    So with more parameters a smaller share of them matters.
    """
    stiffness: float = 2.0
    """Weight of the prior of ``total``, in levels of data per parameter."""
    pairs: float = 0.6
    """Standard deviation of a pair's effect, as a multiple of that of its two parameters."""
    drift: float = 0.01
    drift_sd: float = 0.03
    """Mean effect of changing one parameter, and its standard deviation."""
    noise: float = 0.03
    noise_weight: float = 6.0
    """Standard deviation of one measured log ratio, and the weight of this prior in runs."""
    noises: tuple[float, ...] = (0.01, 0.02, 0.04, 0.08, 0.16, 0.3)
    """Standard deviations of the noise that the fit compares."""
    tail: float = 4.0
    """Degrees of freedom of Student's t for runs slower than predicted (0: normal).

    One launch in five may be three times slower; it must not count against its setting's levels.
    """
    correlation: float = 0.2
    """Correlation of the effects of any two levels of a parameter."""
    rounds: int = 4


def one_thread() -> Any:
    """A context without BLAS threads, which would otherwise still spin during the next run."""
    return _BLAS.limit(limits=1, user_api="blas")


class Kernel(Levels):
    """The similarity of settings, parameter by parameter, for one codec."""

    def __init__(self, codec: Codec, correlation: float) -> None:
        super().__init__(codec)
        self.blocks = np.zeros((self.total, self.total))
        for start, size, axis, optional in zip(
            self.starts.tolist(), codec.sizes.tolist(), codec.axis, codec.optional, strict=True
        ):
            stop = start + size
            self.blocks[start:stop, start:stop] = _alike(size, axis, bool(optional), correlation)
        self.optional = codec.optional
        self.ranks = np.maximum(codec.sizes - codec.optional, 1).astype(np.float64)
        self._columns = np.arange(self.total)
        self._rooms: dict[str, NDArray[Any]] = {}

    def count_changes(self, codes: Matrix) -> Floats:
        """Number of optional parameters that each setting names, shape (settings,)."""
        return np.asarray(((codes > 0) & self.optional).sum(axis=1), dtype=np.float64)

    def alike(self, codes: Matrix) -> Callable[[Floats], Floats]:
        """A function that multiplies the settings' one-hot vectors with a matrix like ``blocks``.

        The matrix is 0 between choices of different parameters, so each element of the product is
        an element of the matrix. A product is valid until the next one.
        """
        flat = self.room("places", len(codes), np.intp)
        product = self.room("product", len(codes), np.float64)
        rows = self.places(codes) * self.total
        rows.take(self.owner, axis=1, mode="clip", out=flat)
        flat += self._columns
        return lambda matrix: matrix.ravel().take(flat, mode="clip", out=product)

    def room(self, use: str, rows: int, kind: type) -> NDArray[Any]:
        """An array of shape (rows, choices) for one use at a time.

        It is reused: the pages of a new megabyte array cost more time than its content.
        """
        if use not in self._rooms or len(self._rooms[use]) < rows:
            self._rooms[use] = np.empty((rows, self.total), dtype=kind)
        return self._rooms[use][:rows]

    def each(self, hot: Floats) -> Floats:
        """Similarity of two settings in each parameter, shape (parameters, pairs of settings)."""
        parts = []
        for start, size in zip(self.starts.tolist(), np.bincount(self.owner).tolist(), strict=True):
            own = hot[:, start : start + size]
            block = self.blocks[start : start + size, start : start + size]
            parts.append((own @ block @ own.T).ravel())
        return np.array(parts)


@dataclass(frozen=True)
class _Fit:
    """The fit at one noise (a variance, like ``sizes``); ``evidence`` is its log probability."""

    evidence: float
    noise: float
    sizes: Floats
    factor: tuple[Floats, bool]
    weights: Floats


class Additive:
    """The surrogate, fitted to ``codes`` (settings, parameters) and ``logs``, their log ratios.

    ``scatter`` is the noise of repeated runs of one setting: a variance and its degrees of freedom.
    """

    def __init__(
        self,
        kernel: Kernel,
        belief: Prior,
        codes: Matrix,
        logs: Floats,
        scatter: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self._kernel = kernel
        self._belief = belief
        self._hot = kernel.one_hot(codes)
        self._changes = kernel.count_changes(codes)
        self._size = belief.total**2 / len(kernel.starts)
        self.sizes = np.full(len(kernel.starts), self._size)
        """Variance of the effects of each parameter's levels."""
        self.noise = belief.noise**2
        if not len(codes):
            return
        self._logs = logs - belief.drift * self._changes
        self._each = kernel.each(self._hot)
        self._rest = self._each - belief.pairs**2 / 2 * self._each**2
        # Untried levels say nothing about the size of the effects.
        tried_levels = np.bincount(kernel.owner, self._hot.any(axis=0), len(kernel.starts))
        ranks = np.clip(tried_levels - kernel.optional, 0, kernel.ranks)
        with one_thread():
            # With few runs, the fit can confuse noise with effects of pairs. It stays near its
            # start, so several levels of noise are compared.
            fits = [self._fit_effects(ranks, noise, scatter) for noise in belief.noises]
            best = max(fits, key=lambda fit: fit.evidence)
            self.noise, self.sizes = best.noise, best.sizes
            self._factor, self._weights = best.factor, best.weights

    def predict(self, codes: Matrix) -> tuple[Floats, Floats]:
        """Mean and standard deviation of each true log ratio, both of shape (settings,)."""
        room = self._kernel.room("one-hot", len(codes), np.float64)
        hot, changes = self._kernel.one_hot(codes, room), self._kernel.count_changes(codes)
        mean = self._belief.drift * changes
        variance = self._own_variance(hot, changes)
        if len(self._hot):
            with one_thread():
                cross = self._covariance(codes, changes)
                mean = mean + cross @ self._weights
                variance = variance - np.einsum("ij,ji->i", cross, cho_solve(self._factor, cross.T))
        return mean, np.sqrt(np.maximum(variance, 1e-12))

    def mean(self, codes: Matrix) -> Floats:
        """Mean of the true log ratio of each setting, shape (settings,)."""
        changes = self._kernel.count_changes(codes)
        mean = self._belief.drift * changes
        if not len(self._hot):
            return mean
        with one_thread():
            return np.asarray(mean + self._covariance(codes, changes) @ self._weights)

    def _fit_effects(self, ranks: NDArray[Any], noise: float, scatter: tuple[float, float]) -> _Fit:
        """The size of each parameter's effects at one noise, by expectation maximisation.

        ``ranks``: the number of tried levels of each parameter, without the default's.
        """
        belief = self._belief
        sizes, own, trust = self.sizes, noise**2, np.ones(len(self._logs))
        factor, weights, inverse = self._solve(sizes, own / trust)
        for _ in range(belief.rounds):
            gradient = self._each @ (np.outer(weights, weights) - inverse).ravel()
            effect_squares = np.maximum(ranks * sizes + sizes**2 * gradient, 0.0)
            sizes = (belief.stiffness * self._size + effect_squares) / (belief.stiffness + ranks)
            if belief.tail:
                each_own = own / trust
                off = each_own * weights
                squares = off**2 + each_own - each_own**2 * inverse.diagonal()
                slow = (belief.tail + 1) / (belief.tail + squares / own)
                trust = np.where(off > 0, np.minimum(slow, 1.0), 1.0)
            factor, weights, inverse = self._solve(sizes, own / trust)
        evidence = -float(self._logs @ weights) / 2 - float(np.log(factor[0].diagonal()).sum())
        for weight, variance in ((belief.noise_weight, belief.noise**2), scatter[::-1]):
            evidence -= weight / 2 * (math.log(own) + variance / own)
        shrink = belief.stiffness / 2 * (np.log(sizes) + self._size / sizes)
        return _Fit(evidence - float(shrink.sum()), own, sizes, factor, weights)

    def _solve(self, sizes: Floats, own: Floats) -> tuple[tuple[Floats, bool], Floats, Floats]:
        """The Cholesky factor, the weights of the runs and the inverse.

        ``own``: variance of each run.
        """
        # The square contains each pair of parameters twice, and each parameter with itself.
        pair = (np.sqrt(sizes) @ self._each) ** 2
        matrix = (sizes @ self._rest + self._belief.pairs**2 / 2 * pair).reshape(len(own), -1)
        matrix += self._belief.drift_sd**2 * np.outer(self._changes, self._changes)
        matrix[np.diag_indices_from(matrix)] += own
        factor = cho_factor(matrix, lower=True, check_finite=False)
        half, _ = dpotri(factor[0], lower=1)
        inverse = np.tril(half) + np.tril(half, -1).T
        return factor, np.asarray(inverse @ self._logs), inverse

    def _covariance(self, codes: Matrix, changes: Floats) -> Floats:
        """Covariance between new settings (rows) and measured ones (columns)."""
        scale = self.sizes[self._kernel.owner]
        blocks = self._kernel.blocks
        alike = self._kernel.alike(codes)
        single = alike(scale[:, None] * blocks) @ self._hot.T
        root = alike(np.sqrt(scale)[:, None] * blocks) @ self._hot.T
        square = alike(scale[:, None] * blocks**2) @ self._hot.T
        # Each step in place: see Kernel.room.
        pair = np.square(root, out=root)
        pair -= square
        pair *= self._belief.pairs**2 / 2
        drift = np.outer(changes, self._changes)
        drift *= self._belief.drift_sd**2
        single += pair
        single += drift
        return np.asarray(single, dtype=np.float64)

    def _own_variance(self, hot: Floats, changes: Floats) -> Floats:
        own = np.diag(self._kernel.blocks)
        scale = self.sizes[self._kernel.owner]
        pair = (hot @ (np.sqrt(scale) * own)) ** 2 - hot @ (scale * own**2)
        total = hot @ (scale * own) + self._belief.pairs**2 / 2 * pair
        return np.asarray(total + self._belief.drift_sd**2 * changes**2, dtype=np.float64)


def _alike(size: int, axis: tuple[int, ...], optional: bool, correlation: float) -> Floats:
    """Prior covariance of the effects of one parameter's choices; the largest variance is 1.

    Levels of an ordered parameter are more similar the closer they are. If unset (code 0) is
    allowed, effects are relative to it: its effect is 0, and if its position on the axis is known,
    its neighbours differ little.
    """
    place = np.arange(size, dtype=np.float64)
    likeness = np.eye(size)
    if axis:
        order = np.array(axis)
        reach = max(1.0, len(axis) / 4)
        distance = np.abs(place[: len(axis), None] - place[None, : len(axis)])
        likeness[np.ix_(order, order)] = np.exp(-distance / reach)
    if optional:
        from_default = likeness[:, :1] @ likeness[:1, :]
        likeness = likeness - from_default
        mark = np.ones(size)
        mark[0] = 0.0
        likeness = (1 - correlation) * likeness + correlation * np.outer(mark, mark)
    else:
        likeness = (1 - correlation) * likeness + correlation
    return np.asarray(likeness / max(likeness.diagonal().max(), 1e-9), dtype=np.float64)


def expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Expected improvement of the log ratio below ``best``, for normal posteriors.

    ``mean`` and ``deviation`` are arrays of one shape, and so is the result.
    """
    gap = best - mean
    z = gap / deviation
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return np.asarray(gap * ndtr(z) + deviation * density, dtype=np.float64)
