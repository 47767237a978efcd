"""Distributes ranks over processes so that all have about the same work (Martin 2018, chapter 8).

The times of the ranks come from a sampling run (``Report.rank_compute_s``), or from the
application's knowledge of its cells. The result is a rank map (``Config.rank_map``), applied at
launch; no rank moves later.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from runner.runtimes.mate.errors import ConfigError

SWEEPS = 50
"""Number of sweeps; about 10 are enough, and more exchanges gain nothing."""
_TOLERANCE = 1e-12
Map = tuple[tuple[int, ...], ...]


def imbalance(compute_s: Sequence[float], total_s: float) -> float:
    """The share of a run's time that uneven work costs: (max - mean) / total (equation 8.1).

    ``compute_s`` is the computation of each rank or core in seconds. Raises :class:`ConfigError` if
    it is empty.
    """
    if not compute_s or not total_s > 0:
        raise ConfigError(
            "imbalance needs the times of a run: at least one rank and a total above 0",
            code="mate.balance",
        )
    return (max(compute_s) - sum(compute_s) / len(compute_s)) / total_s


def consecutive(costs: Sequence[float], processes: int, least: int = 1) -> list[int]:
    """Numbers of consecutive ranks per process that minimise the largest sum.

    Every process gets at least ``least`` ranks (its workers). Of several best divisions, the one
    with most ranks on the first processes is used. The original's search (Martin 2018, figure D.1)
    may never end and may leave processes empty; this one always ends. Raises :class:`ConfigError`
    for invalid times or too few ranks.
    """
    _check(costs, processes, least)
    sums = [0.0, *itertools.accumulate(costs)]
    low, high = max(costs), sums[-1]
    feasible = _feasible(sums, processes, least, low)
    if feasible is None:
        while high - low > _TOLERANCE * sums[-1]:
            middle = (low + high) / 2
            if not low < middle < high:
                break  # Adjacent floating-point numbers: there is no number between them.
            low, high = (
                (low, middle) if _feasible(sums, processes, least, middle) else (middle, high)
            )
        # A sum in another order may be larger in its last bit.
        feasible = _feasible(sums, processes, least, high * (1 + _TOLERANCE))
    assert feasible is not None
    return _cut(sums, processes, least, feasible)


def _check(costs: Sequence[float], processes: int, least: int) -> None:
    if processes < 1 or least < 1 or len(costs) < processes * least:
        raise ConfigError(
            f"{len(costs)} ranks cannot be distributed to {processes} processes with "
            f"{least} or more each",
            code="mate.balance",
        )
    if any(not (math.isfinite(cost) and cost >= 0) for cost in costs):
        raise ConfigError(
            "the times of the ranks must be finite numbers of 0 or more", code="mate.balance"
        )


Feasible = tuple[float, list[list[bool]]]
"""For a largest load and the remaining processes: the first rank from which they can hold all."""


def _feasible(sums: Sequence[float], processes: int, least: int, load: float) -> Feasible | None:
    count = len(sums) - 1
    can = [[False] * (count + 1) for _ in range(processes + 1)]
    can[0][count] = True
    # The first rank that is too far from rank i; it only moves forward.
    reach = [0] * (count + 1)
    end = 0
    for i in range(count + 1):
        end = max(end, i)
        while end < count and sums[end + 1] - sums[i] <= load * (1 + _TOLERANCE):
            end += 1
        reach[i] = end
    for left in range(1, processes + 1):
        after = [0, *itertools.accumulate(map(int, can[left - 1]))]
        for i in range(count + 1):
            first, last = i + least, reach[i]
            can[left][i] = first <= last and after[last + 1] > after[first]
    return (load, can) if can[processes][0] else None


def _cut(sums: Sequence[float], processes: int, least: int, feasible: Feasible) -> list[int]:
    load, can = feasible
    counts, at = [], 0
    for left in range(processes - 1, -1, -1):
        end = max(
            j
            for j in range(at + least, len(sums))
            if can[left][j] and sums[j] - sums[at] <= load * (1 + _TOLERANCE)
        )
        counts.append(end - at)
        at = end
    return counts


def shuffle_ranks(
    rows: Sequence[Sequence[int]], costs: Sequence[float], sweeps: int = SWEEPS
) -> Map:
    """Exchange ranks between processes of one node as long as that lowers the larger of two loads.

    ``rows`` are the ranks of each process, ``costs`` the times by rank. A sweep makes at most one
    exchange per pair of processes, the first helpful one (Martin 2018, figure D.2). The number of
    ranks of a process never changes.
    """
    rank_lists = [list(row) for row in rows]
    loads = [sum(costs[rank] for rank in row) for row in rank_lists]
    for _ in range(sweeps):
        has_moved = False
        for j, k in itertools.combinations(range(len(rank_lists)), 2):
            has_moved |= _exchange(rank_lists, loads, costs, j, k)
        if not has_moved:
            break
    return tuple(map(tuple, rank_lists))


def _exchange(
    rows: list[list[int]], loads: list[float], costs: Sequence[float], j: int, k: int
) -> bool:
    larger = max(loads[j], loads[k])
    for m, n in itertools.product(range(len(rows[j])), range(len(rows[k]))):
        change = costs[rows[k][n]] - costs[rows[j][m]]
        if loads[j] + change < larger and loads[k] - change < larger:
            rows[j][m], rows[k][n] = rows[k][n], rows[j][m]
            loads[j] += change
            loads[k] -= change
            return True
    return False


def balance_ranks(
    costs: Sequence[float], nodes: Sequence[int], least: int = 1, shuffle: bool = True
) -> Map:
    """A rank map: consecutive ranks over all processes, then exchanged within each node.

    ``nodes`` is the node of each process, in order; the order of ranks from node to node stays.
    Raises :class:`ConfigError` as :func:`consecutive` does.
    """
    counts = consecutive(costs, len(nodes), least)
    starts = [0, *itertools.accumulate(counts)]
    rows = [tuple(range(a, b)) for a, b in itertools.pairwise(starts)]
    if not shuffle:
        return tuple(rows)
    rank_map = list(rows)
    for node in dict.fromkeys(nodes):
        own = [process for process, n in enumerate(nodes) if n == node]
        for process, row in zip(own, shuffle_ranks([rows[p] for p in own], costs), strict=True):
            rank_map[process] = row
    return tuple(rank_map)
