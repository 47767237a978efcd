"""Sizes at which several objects on each node should switch algorithms, from times by size.

The library (:mod:`runner.runtimes.intranode.mcoll`) uses one algorithm after the other as sizes
grow, so the points are those of the sequence with the least total time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations_with_replacement

LIBRARY = "library"
"""MPI's own algorithms."""
ORDER = {
    "allgather": (("bruck", ""), ("ring", "switch"), (LIBRARY, "mpi_from")),
    "allreduce": (
        ("bruck", ""),
        ("scatter-bruck", "switch"),
        ("ring", "ring_from"),
        (LIBRARY, "mpi_from"),
    ),
}
"""The algorithms of each operation from small to large sizes, with the end of the switch's name."""
Times = Mapping[tuple[str, int], Sequence[float]]
"""By algorithm and objects (0: all ranks of a node) a time for each size, infinite if it failed."""


def switch_points(operation: str, sizes: Sequence[int], times: Times) -> dict[str, int]:
    """The switches to publish; ``sizes`` in bytes ascend.

    ``library`` has 0 objects.  A switch names the smallest size that was measured with its
    algorithm, or the first byte beyond all sizes if none was; 0 means never where that is possible.
    """
    words = [form for form, _ in ORDER[operation]]
    best: tuple[float, int, tuple[str, ...]] | None = None
    for objects in sorted({k for _, k in times}):
        for forms in combinations_with_replacement(words, len(sizes)):
            cost = _cost(forms, objects, times)
            if math.isfinite(cost) and (best is None or cost < best[0] - 1e-9):
                best = cost, objects, forms
    if best is None:
        return {}
    _, objects, forms = best
    switches = {"objects": objects}
    for at, (_, switch) in enumerate(ORDER[operation]):
        if switch:
            later_sizes = [
                size for size, form in zip(sizes, forms, strict=True) if words.index(form) >= at
            ]
            absent = words[at] not in forms
            # The remaining sizes start with another switch.
            if switch != "switch" and absent:
                switches[f"{operation}_{switch}"] = 0
            else:
                switches[f"{operation}_{switch}"] = later_sizes[0] if later_sizes else sizes[-1] + 1
    return switches


def _cost(forms: Iterable[str], objects: int, times: Times) -> float:
    """The sum of the logarithms of the times."""
    total = 0.0
    for number, form in enumerate(forms):
        every = times.get((form, 0 if form == LIBRARY else objects))
        total += math.log(every[number]) if every else math.inf
    return total
