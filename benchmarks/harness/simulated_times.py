"""Simulated run times with a known truth, for tests and benchmarks of the statistics.

Each model gives one comparison: per block one run of the default and one of a candidate, in random
order within the block. ``gain`` is the true gain; ``cv`` is the typical relative noise of one run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.stats.exact import Floats

BASE_S = 1.0
STEP_S = 0.05  # step of the quantised metric: 5 % of the run
_Noise = Callable[[np.random.Generator, float, int], Floats]


@dataclass(frozen=True)
class SimulatedComparison:
    """Run times in seconds and flags of censored runs, each of shape (blocks,).

    ``truth`` is the true median log ratio; 0 means no effect.
    """

    default: Floats
    candidate: Floats
    censored_candidate: NDArray[np.bool_]
    """Candidate runs that the time limit ended."""
    truth: float


def normal(rng: np.random.Generator, cv: float, n: int) -> Floats:
    """Normal noise, shape (n,)."""
    return rng.normal(0, cv, n)


def heavy_tail(rng: np.random.Generator, cv: float, n: int) -> Floats:
    """Noise from Student's t with 2 degrees of freedom, shape (n,)."""
    return np.asarray(cv * rng.standard_t(2, n))


def skew(rng: np.random.Generator, cv: float, n: int) -> Floats:
    """Noise that is never faster than the floor and often a little slower."""
    return np.asarray(rng.exponential(cv, n))


def bimodal(rng: np.random.Generator, cv: float, n: int) -> Floats:
    """Noise in which three runs of ten are in a slow state."""
    return np.asarray(rng.normal(0, cv, n) + np.log(1.3) * (rng.random(n) < 0.3))


def outliers(rng: np.random.Generator, cv: float, n: int) -> Floats:
    """Noise in which one run of ten takes up to three times as long."""
    late = rng.random(n) < 0.1
    return np.asarray(rng.normal(0, cv, n) + np.log(rng.uniform(1.5, 3, n)) * late)


NOISES: dict[str, _Noise] = {
    "normal": normal,
    "heavy tail": heavy_tail,
    "skewed": skew,
    "bimodal": bimodal,
    "outliers": outliers,
}
MODELS = (*NOISES, "drift", "quantised", "censored", "asymmetric")


def simulate(
    model: str, rng: np.random.Generator, blocks: int, *, gain: float = 0.0, cv: float = 0.05
) -> SimulatedComparison:
    """One comparison under ``model`` (one of ``MODELS``).

    drift: the machine becomes 1.5 times slower over the study and 2 times slower in its middle.
    quantised: rounded to ``STEP_S``. censored: the candidate is ended at 1.05 times its typical
    time. asymmetric: the default is normal, the candidate has a slow tail, and the medians differ
    by ``gain`` only.
    """
    noise = NOISES.get(model, normal)
    effect = float(np.log1p(gain))
    default = np.log(BASE_S) + noise(rng, cv, blocks)
    candidate = np.log(BASE_S) - effect + noise(rng, cv, blocks)
    censored_candidate = np.zeros(blocks, dtype=bool)
    if model == "drift":
        early, late = _moments(blocks)
        first = rng.random(blocks) < 0.5
        default += np.where(first, early, late)
        candidate += np.where(first, late, early)
    if model == "asymmetric":
        candidate = np.log(BASE_S) - effect + _slow_tail(rng, cv, blocks)
    default, candidate = np.exp(default), np.exp(candidate)
    if model == "quantised":
        default, candidate = (STEP_S * np.round(t / STEP_S) for t in (default, candidate))
    if model == "censored":
        limit = 1.05 * BASE_S / (1 + gain)
        censored_candidate = candidate > limit
        candidate = np.minimum(candidate, limit)
    return SimulatedComparison(default, candidate, censored_candidate, effect)


def _moments(blocks: int) -> tuple[Floats, Floats]:
    """Log speed of the machine at the first and second run of each block."""
    when = np.arange(2 * blocks) / (2 * blocks)
    speed = np.log(1 + 0.5 * when) + np.log(2.0) * ((when > 0.4) & (when < 0.6))
    return speed[0::2], speed[1::2]


# Median of S - (N1 - N2), by numerical integration; N is standard normal, S is 0 in 7 of 10 cases,
# else exponential of mean 8.
_TAIL_SHIFT = 0.623228


def _slow_tail(rng: np.random.Generator, cv: float, n: int) -> Floats:
    """Noise of the candidate with which the log ratio to a normal default keeps its median."""
    tail = rng.exponential(8, n) * (rng.random(n) < 0.3)
    return cv * (rng.normal(0, 1, n) + tail - _TAIL_SHIFT)
