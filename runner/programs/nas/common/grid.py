"""The numbers of ranks accepted by the kernels, and their process grids."""

from __future__ import annotations

import math

from runner.programs.apps.common.errors import AppUsageError


def log2_ranks(kernel: str, ranks: int, largest: int | None = None) -> int:
    """log2 of the number of ranks.

    Raises :class:`AppUsageError` if it is not a power of two, or above ``largest``.
    """
    if ranks & (ranks - 1):
        low = 1 << (ranks.bit_length() - 1)
        raise AppUsageError(
            f"nas {kernel} runs on 1, 2, 4, 8, ... ranks, not on {ranks}: "
            f"start it with -n {low} or -n {2 * low}",
            code="app_option.ranks",
        )
    if largest is not None and ranks > largest:
        raise AppUsageError(
            f"nas {kernel} runs on at most {largest} ranks in this class, not on {ranks}: "
            f"start it with -n {largest}, or choose a larger class",
            code="app_option.ranks",
        )
    return ranks.bit_length() - 1


def square_side(kernel: str, ranks: int) -> int:
    """Side of a square of ranks.  Raises :class:`AppUsageError` for any other number."""
    side = math.isqrt(ranks)
    if side * side != ranks:
        raise AppUsageError(
            f"nas {kernel} runs on a square number of ranks (1, 4, 9, 16, ...), not on {ranks}: "
            f"start it with -n {side * side} or -n {(side + 1) ** 2}",
            code="app_option.ranks",
        )
    return side


def two_factors(log2: int) -> tuple[int, int]:
    """2^log2 as two powers of two, the larger one first; they differ by at most a factor of 2."""
    small = log2 // 2
    return 1 << (log2 - small), 1 << small
