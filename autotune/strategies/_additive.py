"""What was measured, as effects of levels: additive, with pairs, each parameter shrunk by itself.

The log ratio of a setting is the sum of one effect per parameter that it changes and one per pair
of those, anchored at the default, which has the effect 0.  How large the effects of a parameter may
be is learned from the data (empirical Bayes), so that levels of a parameter that was seen to matter
are believed to matter, and those of one that does nothing are left alone.  The mean effect of a
change, usually a loss, is learned too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from autotune.strategies._codec import Codec

Floats = NDArray[np.float64]
Matrix = NDArray[np.intp]

_BLAS = ThreadpoolController()


@dataclass(frozen=True)
class Belief:
    """What is believed before anything is measured; all in log ratios."""

    total: float = 0.5
    """Standard deviation of the effects of all parameters together: the more there are, the fewer
    of them matter."""
    stiffness: float = 2.0
    """How many levels' worth of data the belief about ``total`` weighs, per parameter."""
    pairs: float = 0.6
    """Standard deviation of a pair's effect, in those of its two parameters."""
    drift: float = 0.01
    drift_sd: float = 0.03
    """Mean effect of changing one parameter, and how sure that is."""
    noise: float = 0.03
    noise_weight: float = 6.0
    """Standard deviation of one measured log ratio; how many runs that belief weighs."""
    noises: tuple[float, ...] = (0.01, 0.02, 0.04, 0.08, 0.16, 0.3)
    """Standard deviations that are compared."""
    tail: float = 4.0
    """Degrees of freedom of Student's t for runs slower than believed (0: normal): one launch in
    five may be three times as slow, and must not speak against all the levels it was run with."""
    shared: float = 0.2
    """Correlation of the effects of any two levels of a parameter."""
    rounds: int = 4


def one_thread() -> Any:
    """A context without BLAS threads: they would go on spinning while the next run is measured."""
    return _BLAS.limit(limits=1, user_api="blas")


class Kernel:
    """How alike settings are, parameter by parameter, for one codec."""

    def __init__(self, codec: Codec, shared: float) -> None:
        self.starts: Matrix = np.concatenate(([0], np.cumsum(codec.sizes)[:-1])).astype(np.intp)
        self.total = int(codec.sizes.sum())
        self.owner = np.repeat(np.arange(len(codec.sizes)), codec.sizes)
        self.blocks = np.zeros((self.total, self.total))
        for start, size, axis, optional in zip(
            self.starts.tolist(), codec.sizes.tolist(), codec.axis, codec.optional, strict=True
        ):
            stop = start + size
            self.blocks[start:stop, start:stop] = _alike(size, axis, bool(optional), shared)
        self.optional = codec.optional
        self.ranks = np.maximum(codec.sizes - codec.optional, 1).astype(np.float64)

    def one_hot(self, codes: Matrix) -> Floats:
        """Shape (settings, choices of all parameters)."""
        chosen = np.zeros((len(codes), self.total))
        chosen[np.arange(len(codes))[:, None], codes + self.starts] = 1.0
        return chosen

    def changed(self, codes: Matrix) -> Floats:
        """How many parameters each setting names that could be left out."""
        return np.asarray(((codes > 0) & self.optional).sum(axis=1), dtype=np.float64)

    def each(self, hot: Floats) -> Floats:
        """Shape (parameters, settings, settings): how alike two settings are in each."""
        parts = []
        for start, size in zip(self.starts.tolist(), np.bincount(self.owner).tolist(), strict=True):
            own = hot[:, start : start + size]
            block = self.blocks[start : start + size, start : start + size]
            parts.append(own @ block @ own.T)
        return np.array(parts)


@dataclass(frozen=True)
class _Fit:
    """At one noise (a variance, like ``sizes``): ``evidence`` is its log probability."""

    evidence: float
    noise: float
    sizes: Floats
    factor: tuple[Floats, bool]
    weights: Floats


class Additive:
    """Fitted to ``codes`` (settings, parameters) and ``logs``, their measured log ratios.

    ``scatter`` is what repeated runs of one setting tell of the noise: a variance and its degrees
    of freedom.
    """

    def __init__(
        self,
        kernel: Kernel,
        belief: Belief,
        codes: Matrix,
        logs: Floats,
        scatter: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self._kernel = kernel
        self._belief = belief
        self._hot = kernel.one_hot(codes)
        self._changed = kernel.changed(codes)
        self._size = belief.total**2 / len(kernel.starts)
        self.sizes = np.full(len(kernel.starts), self._size)
        """Variance of the effects of each parameter's levels."""
        self.noise = belief.noise**2
        if not len(codes):
            return
        self._logs = logs - belief.drift * self._changed
        each = kernel.each(self._hot)
        # Levels that were never tried say nothing about how large the effects are.
        tried = np.bincount(kernel.owner, self._hot.any(axis=0), len(kernel.starts))
        ranks = np.clip(tried - kernel.optional, 0, kernel.ranks)
        with one_thread():
            # With few runs, noise passes for pairs that go together and the other way round: from
            # one start the fit stays where it began, so several levels of noise are compared.
            fits = [self._fitted(each, ranks, noise, scatter) for noise in belief.noises]
            best = max(fits, key=lambda fit: fit.evidence)
            self.noise, self.sizes = best.noise, best.sizes
            self._factor, self._weights = best.factor, best.weights

    def predict(self, codes: Matrix) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the true log ratio of each setting."""
        hot, changed = self._kernel.one_hot(codes), self._kernel.changed(codes)
        mean = self._belief.drift * changed
        variance = self._own_variance(hot, changed)
        if len(self._hot):
            with one_thread():
                cross = self._covariance(hot, changed)
                mean = mean + cross @ self._weights
                variance = variance - np.einsum("ij,ji->i", cross, cho_solve(self._factor, cross.T))
        return mean, np.sqrt(np.maximum(variance, 1e-12))

    def mean(self, codes: Matrix) -> Floats:
        """Mean of the true log ratio of each setting."""
        hot, changed = self._kernel.one_hot(codes), self._kernel.changed(codes)
        mean = self._belief.drift * changed
        if not len(self._hot):
            return mean
        with one_thread():
            return np.asarray(mean + self._covariance(hot, changed) @ self._weights)

    def _fitted(
        self, each: Floats, ranks: NDArray[Any], noise: float, scatter: tuple[float, float]
    ) -> _Fit:
        """Expectation and maximisation at one noise: how large each parameter's effects are.

        ``ranks``: how many of its levels, the default's apart, were tried.
        """
        belief = self._belief
        sizes, own, trust = self.sizes, noise**2, np.ones(len(self._logs))
        factor, weights, inverse = self._solved(each, sizes, own / trust)
        for _ in range(belief.rounds):
            moved = np.einsum("i,pij,j->p", weights, each, weights)
            moved -= np.einsum("ij,pij->p", inverse, each)
            seen = np.maximum(ranks * sizes + sizes**2 * moved, 0.0)
            sizes = (belief.stiffness * self._size + seen) / (belief.stiffness + ranks)
            if belief.tail:
                each_own = own / trust
                off = each_own * weights
                squares = off**2 + each_own - each_own**2 * inverse.diagonal()
                slow = (belief.tail + 1) / (belief.tail + squares / own)
                trust = np.where(off > 0, np.minimum(slow, 1.0), 1.0)
            factor, weights, inverse = self._solved(each, sizes, own / trust)
        evidence = -float(self._logs @ weights) / 2 - float(np.log(factor[0].diagonal()).sum())
        for weight, variance in ((belief.noise_weight, belief.noise**2), scatter[::-1]):
            evidence -= weight / 2 * (math.log(own) + variance / own)
        shrink = belief.stiffness / 2 * (np.log(sizes) + self._size / sizes)
        return _Fit(evidence - float(shrink.sum()), own, sizes, factor, weights)

    def _solved(
        self, each: Floats, sizes: Floats, own: Floats
    ) -> tuple[tuple[Floats, bool], Floats, Floats]:
        """The factor, the weights of the runs and the inverse; ``own``: each run's variance."""
        root = np.sqrt(sizes)
        single = np.einsum("p,pij->ij", sizes, each)
        pair = np.einsum("p,pij->ij", root, each) ** 2 - np.einsum("p,pij->ij", sizes, each**2)
        matrix = single + self._belief.pairs**2 / 2 * pair
        matrix += self._belief.drift_sd**2 * np.outer(self._changed, self._changed)
        matrix[np.diag_indices_from(matrix)] += own
        factor = cho_factor(matrix, lower=True)
        inverse = cho_solve(factor, np.eye(len(matrix)))
        return factor, np.asarray(inverse @ self._logs), np.asarray(inverse)

    def _covariance(self, hot: Floats, changed: Floats) -> Floats:
        """Between new settings (rows) and those measured (columns)."""
        scale = self.sizes[self._kernel.owner]
        blocks = self._kernel.blocks
        single = hot @ (scale[:, None] * blocks) @ self._hot.T
        root = hot @ (np.sqrt(scale)[:, None] * blocks) @ self._hot.T
        square = hot @ (scale[:, None] * blocks**2) @ self._hot.T
        pair = self._belief.pairs**2 / 2 * (root**2 - square)
        drift = self._belief.drift_sd**2 * np.outer(changed, self._changed)
        return np.asarray(single + pair + drift, dtype=np.float64)

    def _own_variance(self, hot: Floats, changed: Floats) -> Floats:
        own = np.diag(self._kernel.blocks)
        scale = self.sizes[self._kernel.owner]
        pair = (hot @ (np.sqrt(scale) * own)) ** 2 - hot @ (scale * own**2)
        total = hot @ (scale * own) + self._belief.pairs**2 / 2 * pair
        return np.asarray(total + self._belief.drift_sd**2 * changed**2, dtype=np.float64)


def _alike(size: int, axis: tuple[int, ...], optional: bool, shared: float) -> Floats:
    """Prior covariance of the effects of one parameter's choices, largest variance 1.

    Levels of an ordered parameter are the more alike the closer they are.  Where unset (code 0) is
    allowed, all are seen from there: its own effect is 0, and where its place on the axis is known
    its neighbours differ little from it.
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
        likeness = (1 - shared) * likeness + shared * np.outer(mark, mark)
    else:
        likeness = (1 - shared) * likeness + shared
    return np.asarray(likeness / max(likeness.diagonal().max(), 1e-9), dtype=np.float64)
