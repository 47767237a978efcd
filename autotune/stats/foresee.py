"""What more blocks would decide, if they were like those that were measured."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.stats.sequential import Plan

POWER = 0.8
_DRAWS = 200
_MOST = 1000
"""More pairs than this are not proposed."""


@dataclass(frozen=True)
class Foreseen:
    """``chance`` (0 to 1) that a plan comes to a decision, and by how many ``blocks`` it has in
    four of five of these cases."""

    chance: float
    blocks: int


def foresee(plan: Plan, logs: Sequence[float], *, kept: bool = False, seed: int = 0) -> Foreseen:
    """Carry out ``plan`` many times on blocks drawn from the measured ones, with replacement.

    ``logs``: log(T_default / T) of each measured block, one at least.  ``kept``: these are the
    plan's own first blocks, and the others are drawn.  An estimate: it knows nothing of noise that
    was not met yet.
    """
    rng = np.random.default_rng(seed)
    seen = np.asarray(logs, dtype=np.float64)
    last = plan.looks[-1]
    first = seen[:last] if kept else seen[:0]
    decided = []
    for _ in range(_DRAWS):
        drawn = rng.choice(seen, last - first.size)
        blocks = np.concatenate([first, drawn])
        found = plan.decide(np.ones(last), np.exp(-blocks), resolution=0.0)
        if found.stop and found.outcome != "undecided":
            decided.append(found.comparison.n)
    if not decided:
        return Foreseen(0.0, last)
    return Foreseen(len(decided) / _DRAWS, int(np.quantile(decided, POWER, method="higher")))


def pairs_needed(logs: Sequence[float], min_gain: float, seed: int = 0) -> int | None:
    """Pairs of a new comparison with one look that decides with 80 % chance; None: beyond 1000."""
    for pairs in itertools.takewhile(lambda n: n <= _MOST, _numbers()):
        fixed = Plan.fixed(pairs, min_gain=min_gain)
        if foresee(fixed, logs, seed=seed).chance >= POWER:
            return pairs
    return None


def scatter(logs: Sequence[float]) -> float:
    """From block to block, as a fraction: half of the blocks lie within 0.67 of it."""
    middle = statistics.median(logs)
    return float(np.expm1(1.4826 * statistics.median(abs(value - middle) for value in logs)))


def _numbers() -> itertools.accumulate[int]:
    return itertools.accumulate(itertools.repeat(12), lambda n, _: n + max(n // 4, 4))
