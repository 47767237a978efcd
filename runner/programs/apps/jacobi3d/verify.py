"""Verification of a run by its residual."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runner.programs.apps.common.grid import Shape
from runner.programs.apps.jacobi3d.block import Block

TOLERANCE = 1e-12
"""Largest relative difference of the residual.

The fields of all decompositions are equal bit for bit; only the order in which the squares are
added differs.
"""


@dataclass(frozen=True)
class Verdict:
    """The outcome; ``is_verified`` is None if there was nothing to compare with."""

    is_verified: bool | None
    residual: float
    reference: float | None
    message: str


def residual(square_sum: float, size: Shape) -> float:
    """Root mean square of the field, which is the distance from the solution, zero."""
    return math.sqrt(square_sum / math.prod(size))


def global_residual(comm: Any, blocks: Sequence[Block]) -> float:
    """The residual over the blocks of all processes, on every process.  Collective."""
    squares = sum(block.square_sum() for block in blocks)
    return residual(comm.allreduce(squares), blocks[0].size)


def judge_residual(value: float, start: float, reference: float | None) -> Verdict:
    """Compare with the stored value; without one the field must at least have decayed."""
    if not value < start:  # also true for NaN
        message = f"verification failed: residual {value!r} did not fall below {start!r}"
        return Verdict(False, value, reference, message)
    if reference is None:
        message = f"residual {value!r} unchecked: no stored value for this size and iterations"
        return Verdict(None, value, None, message)
    if abs(value - reference) <= TOLERANCE * reference:
        return Verdict(True, value, reference, f"residual {value!r} as expected")
    message = f"verification failed: residual {value!r}, expected {reference!r}"
    return Verdict(False, value, reference, message)
