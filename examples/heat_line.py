"""The problem of tarragon_line.py and tpod_line.py: heat in a line, and its answer in one piece."""

from typing import Any

import numpy as np
from mpi4py import MPI

CELLS, STEPS = 100, 50  # cells of a part


def start_values(parts: int) -> np.ndarray:
    """The whole line, with a cold cell beyond each end."""
    values = np.zeros(parts * CELLS + 2)
    values[1:-1] = np.arange(parts * CELLS) % 7
    return values


def expected(parts: int) -> np.ndarray:
    """The line after the last step, without its ends."""
    old = start_values(parts)
    for _ in range(STEPS):
        new = old.copy()
        new[1:-1] = 0.25 * old[:-2] + 0.5 * old[1:-1] + 0.25 * old[2:]
        old = new
    return old[1:-1]


def end(comm: Any, own_is_right: bool) -> None:
    """Print whether all processes are right, and end with exit code 1 if not. Collective."""
    is_right = comm.allreduce(own_is_right, op=MPI.LAND)
    if comm.rank == 0:
        print("verified" if is_right else "WRONG")
    if not is_right:
        raise SystemExit(1)
