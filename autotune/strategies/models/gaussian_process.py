"""A Gaussian process over settings: every parameter may change what every other one does.

Two settings are alike by one product over all parameters, so it knows no effect of a level by
itself: what it learned from one setting holds for settings near it in every parameter that matters.
Distances have one length scale for each parameter (Rasmussen and Williams, 2006, chapters 2 and 5).
The length scales, the variance and the noise are those with the largest posterior probability. The
prior of a length scale grows with the square root of the number of parameters (Hvarfner, Hellsten
and Nardi, ICML 2024).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri

from autotune.space.setting import Value
from autotune.strategies.codec import Codec
from autotune.strategies.levels import Floats, Matrix

_ROOT5 = math.sqrt(5.0)
_JITTER = 1e-6
_SPAN = 4.0
"""The fit searches so many standard deviations of the prior to either side."""
_LOG_SCALE = 4.0
"""Levels whose largest is at least this multiple of the smallest are compared by their logs."""


_FEW = 5
"""Levels that a parameter has at least whose divisibility counts."""
_MOST_TWOS = 3.0
"""Divisions by two, beyond those of all levels, that make a difference."""
_SAME = 0.9
"""Correlation with the log of the levels above which their divisibility says nothing new."""


@dataclass(frozen=True)
class SmoothPrior:
    """The prior; lengths in units of a parameter's whole range, the rest in log ratios."""

    length: float = 0.4
    """Median length scale of one parameter, for a space of one."""
    length_sd: float = 1.0
    """Standard deviation of a log length scale."""
    variance_sd: float = 1.0
    """Standard deviation of the log variance; its median is that of the data."""
    noise: float = 0.03
    noise_weight: float = 6.0
    """Standard deviation of one measured log ratio, and the weight of this prior in runs."""
    noise_sd: float = 1.5
    """Standard deviation of the log variance of the noise."""
    iterations: int = 20


class Coordinates:
    """Where the levels of each parameter lie, on one or two axes (``count`` in all).

    A number lies between 0 and 1, in the middle between its place by value (by its log where levels
    span a factor of four) and its place by rank. Whole numbers have a second axis, by how often two
    divides them: blocks of 96 and 128 are alike where 100 is not. Two levels that are no numbers
    are 1 apart.
    """

    def __init__(self, codec: Codec) -> None:
        self._axes: list[tuple[int, Floats | None]] = []
        for number, (parameter, axis, choices) in enumerate(
            zip(codec.space.parameters, codec.axis, codec.choices, strict=True)
        ):
            levels = [parameter.default if choice is None else choice for choice in choices]
            if len(axis) < len(choices):
                self._axes.append((number, None))
                continue
            numbers = np.array(levels, dtype=np.float64)
            self._axes.append((number, _between(numbers)))
            twos = _twos(levels)
            if twos is not None:
                self._axes.append((number, twos))
        self.count = len(self._axes)

    def squares(self, rows: Matrix, others: Matrix) -> Floats:
        """Squared distances on each axis, shape (axes, rows x others)."""
        squares = np.empty((self.count, len(rows), len(others)))
        for place, (number, axis) in enumerate(self._axes):
            one, two = rows[:, number], others[:, number]
            if axis is None:
                squares[place] = one[:, None] != two
            else:
                squares[place] = (axis[one][:, None] - axis[two]) ** 2
        return squares.reshape(self.count, -1)


class ProductProcess:
    """The posterior of the log ratios, given ``rows`` (settings, parameters) and ``logs``.

    ``theta`` has the log length scale of each axis, the log variance, and the log variance of
    the noise, both relative to the variance of ``logs``. Without it they are fitted.
    ``scatter`` is the noise of repeated runs of one setting: a variance and its degrees of freedom.
    """

    def __init__(
        self,
        coordinates: Coordinates,
        prior: SmoothPrior,
        rows: Matrix,
        logs: Floats,
        scatter: tuple[float, float] = (0.0, 0.0),
        theta: Floats | None = None,
    ) -> None:
        self._coordinates, self._prior, self._rows = coordinates, prior, rows
        self._centre = float(logs.mean())
        self._scale = max(float(logs.std()), prior.noise)
        self._values = (logs - self._centre) / self._scale
        self._squares = coordinates.squares(rows, rows)
        count = coordinates.count
        weight = prior.noise_weight + scatter[1]
        noise = (prior.noise_weight * prior.noise**2 + scatter[1] * scatter[0]) / weight
        length = math.log(prior.length * math.sqrt(count))
        self._mean = np.append(np.full(count, length), [0.0, math.log(noise / self._scale**2)])
        deviation = [prior.variance_sd, prior.noise_sd]
        self._deviation = np.append(np.full(count, prior.length_sd), deviation)
        self.theta = self._fit() if theta is None else theta
        self._factor = cholesky(self._covariance(self.theta)[0], lower=True, check_finite=False)
        self._weights = cho_solve((self._factor, True), self._values)

    def predict(self, rows: Matrix) -> tuple[Floats, Floats]:
        """Mean and standard deviation of each true log ratio, both of shape (rows,)."""
        alike, _ = _matern(
            self._per_length(self.theta) @ self._coordinates.squares(rows, self._rows)
        )
        variance = math.exp(self.theta[-2])
        cross = variance * alike.reshape(len(rows), len(self._rows))
        part = solve_triangular(self._factor, cross.T, lower=True, check_finite=False)
        left = np.maximum(variance - np.einsum("ij,ij->j", part, part), 1e-9)
        return self._centre + self._scale * (cross @ self._weights), self._scale * np.sqrt(left)

    @property
    def noise(self) -> float:
        """Standard deviation of one measured log ratio around its true one."""
        return self._scale * math.exp(self.theta[-1] / 2.0)

    @property
    def evidence(self) -> float:
        """The log odds of this process against noise around one mean, whose variance is fitted."""
        spread = max(float(self._values @ self._values) / len(self._values), 1e-12)
        noise_alone = 0.5 * len(self._values) * (1.0 + math.log(spread))
        return noise_alone - self._loss(self.theta)[0]

    def _fit(self) -> Floats:
        from scipy.optimize import minimize

        reach = _SPAN * self._deviation
        bounds = list(zip(self._mean - reach, self._mean + reach, strict=True))
        bounds[-1] = (bounds[-1][0], max(bounds[-1][0], 0.0))
        result = minimize(
            self._loss,
            self._mean,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": self._prior.iterations},
        )
        return np.asarray(result.x, dtype=np.float64)

    def _per_length(self, theta: Floats) -> Floats:
        return np.asarray(np.exp(-2.0 * theta[:-2]))

    def _covariance(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """The covariance of the runs; the likeness of each two; its slope by squared distance."""
        alike, slope = _matern(self._per_length(theta) @ self._squares)
        size = len(self._rows)
        matrix = math.exp(theta[-2]) * alike.reshape(size, size)
        matrix[np.diag_indices(size)] += math.exp(theta[-1]) + _JITTER
        return matrix, alike, slope

    def _loss(self, theta: Floats) -> tuple[float, Floats]:
        """The negative log posterior probability of ``theta``, and its gradient."""
        matrix, alike, slope = self._covariance(theta)
        try:
            factor = cholesky(matrix, lower=True, check_finite=False)
        except LinAlgError:
            return 1e10, np.zeros_like(theta)
        weights = cho_solve((factor, True), self._values, check_finite=False)
        half, _ = dpotri(factor, lower=1)
        inverse = np.tril(half) + np.tril(half, -1).T
        pull = (inverse - np.outer(weights, weights)).ravel()
        variance = math.exp(theta[-2])
        gradient = np.empty_like(theta)
        gradient[:-2] = variance * self._per_length(theta) * (self._squares @ (pull * slope))
        gradient[-2] = 0.5 * variance * (pull @ alike)
        gradient[-1] = 0.5 * math.exp(theta[-1]) * pull[:: len(weights) + 1].sum()
        off = (theta - self._mean) / self._deviation
        loss = 0.5 * float(self._values @ weights) + float(np.log(factor.diagonal()).sum())
        return loss + 0.5 * float(off @ off), gradient + off / self._deviation


def _matern(squares: Floats) -> tuple[Floats, Floats]:
    """Matern's covariance of order 5/2 at squared distances, and its negative slope by them."""
    distance = _ROOT5 * np.sqrt(squares)
    fall = np.exp(-distance)
    return (1.0 + distance + distance**2 / 3.0) * fall, 5.0 / 6.0 * (1.0 + distance) * fall


def _between(numbers: Floats) -> Floats:
    by_rank = np.argsort(np.argsort(numbers)) / (len(numbers) - 1)
    if numbers.min() > 0 and numbers.max() >= _LOG_SCALE * numbers.min():
        numbers = np.log(numbers)
    by_value = (numbers - numbers.min()) / (numbers.max() - numbers.min())
    return np.asarray((by_rank + by_value) / 2.0, dtype=np.float64)


def _twos(levels: Sequence[Value | None]) -> Floats | None:
    """How often two divides each level, from 0 to 1; None if that says no more than its size."""
    whole = [level for level in levels if isinstance(level, int) and level > 0]
    if len(whole) < max(len(levels), _FEW):
        return None
    twos = np.array([(level & -level).bit_length() - 1 for level in whole], dtype=np.float64)
    twos = np.minimum(twos - twos.min(), _MOST_TWOS)
    if not twos.any() or abs(np.corrcoef(twos, np.log(whole))[0, 1]) > _SAME:
        return None
    return np.asarray(twos / twos.max())
