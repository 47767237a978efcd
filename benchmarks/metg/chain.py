"""The body of a task, as plain functions that are compiled with whatever calls them.

The chain is arithmetic in which each operation needs the one before, so its time is that of the
operations, whatever the processor runs beside it. A loop that reads a clock would hide the
scheduling around it. Other versions: ``chain.h`` (C).
"""

from __future__ import annotations


def chain(x: float, steps: int) -> float:
    """``x`` after ``steps`` steps of the logistic map; stays between 0 and 1."""
    for _ in range(steps):
        x = 3.9 * x * (1.0 - x)
    return x


def combined(left: float, own: float, right: float) -> float:
    """What a task makes of the values of the iteration before; the order of additions is fixed."""
    return 0.25 * left + 0.5 * own + 0.25 * right
