"""Efficiency over the length of tasks, and METG: the smallest granularity that is still efficient.

METG(50 %) is the shortest time of a task's body at which the bodies still take half of the workers'
time (Slaughter et al., Task Bench, 2020). Times are in microseconds unless a name says seconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.metg import WIDTH

SHORTEST_US, LONGEST_US, FACTOR = 0.02, 50.0, 1.4
LEAST_SHARE, LARGEST_SHARE = 0.02, 5.0
"""Shortest and longest granularity between nodes, as parts of the network's latency."""
BELOW = 0.0
"""METG of a program that is efficient at the shortest length already."""
ABOVE = math.inf
"""METG of a program that is not efficient at the longest length."""


def lengths(
    step_us: float,
    count: int | None = None,
    shortest_us: float = SHORTEST_US,
    longest_us: float = LONGEST_US,
) -> list[int]:
    """Lengths of the chain in steps, from the shortest to the longest granularity.

    Neighbours differ by ``FACTOR``; with ``count``, by the factor that makes so many.
    """
    number = count or round(math.log(longest_us / shortest_us) / math.log(FACTOR)) + 1
    factor = (longest_us / shortest_us) ** (1 / (number - 1))
    return [max(1, round(shortest_us * factor**n / step_us)) for n in range(number)]


def lengths_for(step_us: float, latency_us: float, count: int | None = None) -> list[int]:
    """The lengths where each message takes so long: METG is expected at a part of it."""
    return lengths(step_us, count, latency_us * LEAST_SHARE, latency_us * LARGEST_SHARE)


def efficiency(granularity_us: float, iterations: int, wall_s: float, workers: int) -> float:
    """Time of the bodies alone over the workers' time; the reference is the chain's own time.

    It may exceed 1 for short chains: a processor overlaps chains of tasks that do not depend on
    each other.
    """
    return granularity_us * WIDTH * iterations / (wall_s * 1e6 * workers)


def metg(granularity_us: Sequence[float], found: Sequence[float], bound: float = 0.5) -> float:
    """The granularity from which on every efficiency reaches ``bound``.

    Between two lengths it is interpolated in the logarithm of the granularity. :data:`BELOW` if
    every efficiency reaches the bound, :data:`ABOVE` if the last one does not.
    """
    low = max((n for n, value in enumerate(found) if value < bound), default=None)
    if low is None:
        return BELOW
    if low == len(found) - 1:
        return ABOVE
    share = (bound - found[low]) / (found[low + 1] - found[low])
    first, second = math.log(granularity_us[low]), math.log(granularity_us[low + 1])
    return math.exp(first + share * (second - first))


def figure(value_us: float, granularity_us: Sequence[float]) -> str:
    """A METG for people: ``<0.02`` and ``>50`` where the lengths do not reach it."""
    if value_us == BELOW:
        return f"<{granularity_us[0]:.2g}"
    if value_us == ABOVE:
        return f">{granularity_us[-1]:.3g}"
    return f"{value_us:.3g}" if value_us < 100 else f"{value_us:.0f}"
