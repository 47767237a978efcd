"""The random numbers of NPB: x' = a x (mod 2^46), as uniform deviates 2^-46 x.

The original computes with doubles that are split into halves; the low 46 bits of a 64-bit integer
product are the same numbers. Source: NAS-95-020, section 2.3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from runner.runtimes.core.kernels import load, scalars

BITS = 46
MODULUS = 1 << BITS
MULTIPLIER = 5**13
SEED = 314159265


def power(steps: int, multiplier: int = MULTIPLIER) -> int:
    """The factor that moves a seed on by ``steps`` numbers: a^steps mod 2^46."""
    return pow(multiplier, steps, MODULUS)


def jump(seed: int, steps: int, multiplier: int = MULTIPLIER) -> int:
    """The seed after ``steps`` numbers, without computing the numbers."""
    return seed * power(steps, multiplier) % MODULUS


def fill_uniform(target: NDArray[np.float64], seed: int, multiplier: int = MULTIPLIER) -> int:
    """Fill a contiguous array with the deviates that follow ``seed``; returns the last seed."""
    if target.size == 0:
        return seed
    state = scalars([seed, multiplier, target.size])
    load("runner.programs.nas.common.kernels").bind("fill_uniform", target.reshape(-1), state)()
    return int(state[0])
