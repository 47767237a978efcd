"""Verification of a run: the residual in every run, every bit on request."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.apps.common_grid import Shape
from runner.apps.jacobi3d.block import Block, serial_block

TOLERANCE = 1e-12
"""Largest relative difference of the residual.

The fields of all decompositions are equal bit for bit; only the order in which the squares are
added differs.
"""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a verification; ``verified`` is None if there was nothing to compare with."""

    verified: bool | None
    residual: float
    expected: float | None
    message: str


def residual(square_sum: float, size: Shape) -> float:
    """Root mean square of the field, which is the distance from the solution, zero."""
    return math.sqrt(square_sum / math.prod(size))


def global_residual(comm: Any, blocks: Sequence[Block]) -> float:
    """The residual over the blocks of all processes, on every process.  Collective."""
    squares = sum(block.square_sum() for block in blocks)
    return residual(comm.allreduce(squares), blocks[0].size)


def judge_residual(value: float, start: float, expected: float | None) -> Verdict:
    """Compare with the stored value; without one the field must at least have decayed."""
    if not value < start:  # also true for NaN
        message = f"verification failed: residual {value!r} did not fall below {start!r}"
        return Verdict(False, value, expected, message)
    if expected is None:
        message = f"residual {value!r} unchecked: no stored value for this size and iterations"
        return Verdict(None, value, None, message)
    if abs(value - expected) <= TOLERANCE * expected:
        return Verdict(True, value, expected, f"residual {value!r} as expected")
    message = f"verification failed: residual {value!r}, expected {expected!r}"
    return Verdict(False, value, expected, message)


def compare_with_serial(comm: Any, blocks: Sequence[Block], iterations: int) -> str | None:
    """Compare every bit of the field with a serial run on rank 0; the difference in words, or None.

    Collective; the answer is on every rank. Rank 0 needs memory for the whole grid twice.
    """
    if comm.rank != 0:
        comm.send([(block.start, block.stop) for block in blocks], 0)
        for block in blocks:
            comm.Send(np.ascontiguousarray(block.interior), 0)
        return str(found) if (found := comm.bcast(None)) is not None else None
    serial = serial_block(blocks[0].size, iterations).interior
    messages = [_difference(serial, b.start, b.stop, b.interior, 0) for b in blocks]
    for rank in range(1, comm.size):
        for start, stop in comm.recv(source=rank):
            values = np.empty([b - a for a, b in zip(reversed(start), reversed(stop), strict=True)])
            comm.Recv(values, rank)
            messages.append(_difference(serial, start, stop, values, rank))
    first = next((m for m in messages if m is not None), None)
    comm.bcast(first)
    return first


def _difference(
    serial: NDArray[np.float64],
    start: Shape,
    stop: Shape,
    values: NDArray[np.float64],
    rank: int,
) -> str | None:
    (x0, y0, z0), (x1, y1, z1) = start, stop
    wanted = serial[z0:z1, y0:y1, x0:x1]
    unequal = np.argwhere(wanted.view(np.uint64) != values.view(np.uint64))
    if len(unequal) == 0:
        return None
    k, j, i = unequal[0].tolist()
    return (
        f"verification failed: {len(unequal)} cells of rank {rank} differ from the serial run, "
        f"first at x={x0 + i} y={y0 + j} z={z0 + k}: {float(values[k, j, i])!r}, "
        f"expected {float(wanted[k, j, i])!r}"
    )
