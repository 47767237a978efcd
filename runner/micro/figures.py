"""The figure of some batches.  Not from ``statistics``: its import takes 10 ms of each rank."""

from __future__ import annotations

from collections.abc import Sequence


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two in the middle; at least one value."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2
