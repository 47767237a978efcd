"""The balance of heat: the heat in the grid is the initial heat minus the lost heat.

A wrong face breaks it: the heat that one process's cells lose is not what the cells behind the face
gain. Two errors show only in the comparison of all bits: cells of a face in another order, and
wrong movement of heat within a process.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runner.programs.apps.common.grid import Shape
from runner.programs.apps.minighost.domain import Domain

UNIT = 2.0**-53
"""Largest relative error of one addition of doubles."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a verification; ``is_right`` is None if nothing was checked.

    ``error`` is the largest imbalance of a variable and ``bound`` the largest that rounding
    explains, both as shares of the heat put in.
    """

    is_right: bool | None
    error: float
    bound: float
    message: str


def total(comm: Any, values: Sequence[float]) -> list[float]:
    """The sum of each value over all processes, on each process.  Collective."""
    return [math.fsum(parts) for parts in zip(*comm.allgather(values), strict=True)]


def rounding(size: Shape, steps: int) -> float:
    """The largest imbalance from rounding, as a share of the initial heat.

    All values are positive, and the heat never grows. So an error is at most the number of
    additions that a value passes through, times the unit roundoff, times the heat. A step adds 4
    times for a cell (products with the weights are exact). The heat lost passes through a layer of
    cells (at most the sum of the extents, and 5), 6 additions to the account in each step, and 2
    over boxes and processes. The sum of the grid has fewer; the start values' sum is exact.
    """
    additions = 10 * steps + sum(size) + 8
    return additions * UNIT / (1 - additions * UNIT)


def balance(comm: Any, domain: Domain, put_in: Sequence[float], steps: int) -> Verdict:
    """Compare the heat of each variable with the initial heat minus the lost heat. Collective."""
    inside, left = total(comm, domain.heat()), total(comm, domain.lost_heat())
    bound = rounding(domain.size, steps)
    errors = [
        abs(math.fsum([begin, -out, -end])) / begin
        for begin, out, end in zip(put_in, left, inside, strict=True)
    ]
    wrong = [n for n, error in enumerate(errors) if not error <= bound]  # also true for NaN
    n = wrong[0] if wrong else errors.index(max(errors))
    message = (
        f"heat of variable {n}: put in {put_in[n]!r}, left {left[n]!r}, in the grid {inside[n]!r}; "
        f"out of balance by {errors[n]:.2g} of it, at most {bound:.2g} by rounding"
    )
    if wrong:
        message = f"verification failed: {message}"
    return Verdict(not wrong, errors[n], bound, message)
