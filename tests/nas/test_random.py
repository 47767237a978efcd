"""The random numbers: the same as with doubles cut in halves, and the same after a jump."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.programs.nas.common.random import (
    MODULUS,
    MULTIPLIER,
    SEED,
    fill_uniform,
    jump,
    power,
)

seeds = st.integers(0, MODULUS // 2 - 1).map(lambda n: 2 * n + 1)
steps = st.integers(0, 10**12)
few = st.integers(0, 300)


def halves(seed: float, multiplier: float) -> float:
    """One step as NAS-95-020, section 2.3 gives it: exact with 53-bit doubles."""
    a1, x1 = float(multiplier // 2**23), float(seed // 2**23)
    a2, x2 = multiplier - 2**23 * a1, seed - 2**23 * x1
    z = (a1 * x2 + a2 * x1) % 2.0**23
    return (2.0**23 * z + a2 * x2) % 2.0**46


@given(seeds, few)
def test_a_jump_is_as_many_steps(seed: int, count: int) -> None:
    x = float(seed)
    for _ in range(count):
        x = halves(x, float(MULTIPLIER))
    assert jump(seed, count) == int(x)


@given(seeds, steps, steps)
def test_jumps_add_up(seed: int, first: int, second: int) -> None:
    assert jump(jump(seed, first), second) == jump(seed, first + second)
    assert power(first) * power(second) % MODULUS == power(first + second)


def test_the_sequence_has_period_2_to_the_44() -> None:
    assert jump(SEED, 1 << 44) == SEED
    assert jump(SEED, 1 << 43) != SEED


@given(seeds, few, few)
@settings(max_examples=30, deadline=None)  # the first example may compile
def test_a_sequence_in_two_parts(seed: int, first: int, second: int) -> None:
    whole, parts = np.zeros(first + second), np.zeros(first + second)
    last = fill_uniform(whole, seed)
    assert fill_uniform(parts[:first], seed) == jump(seed, first)
    assert fill_uniform(parts[first:], jump(seed, first)) == last
    assert np.array_equal(whole, parts)


@given(seeds, st.integers(1, 300))
@settings(max_examples=30, deadline=None)  # the first example may compile
def test_deviates_are_scaled_seeds(seed: int, count: int) -> None:
    values = np.empty(count)
    last = fill_uniform(values, seed)
    assert last == jump(seed, count)
    assert values.tolist() == [jump(seed, n) / MODULUS for n in range(1, count + 1)]


def test_the_first_number_of_the_benchmark_seed() -> None:
    """314159265 * 5^13 mod 2^46, worked out by hand."""
    assert jump(SEED, 1) == 314159265 * 1220703125 - 5449 * 2**46
