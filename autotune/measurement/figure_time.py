"""How much of a run's wall time its figure covers, and what a run that was stopped proves of it.

A printed time is a part of the run: start and end lie outside of it. A rate, and the figure of an
objective of the user's own, are no seconds: there the whole run counts, from launch to end.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from autotune.wording import OBJECTIVE
from runner.types import RunRecord


def covered_s(record: RunRecord) -> float:
    """Wall seconds that the figure of a valid run covers; all of them if it is no time."""
    is_time = not record.metric_rate and not is_objective(record)
    return record.value_s if is_time else record.wall_s


def outside_s(records: Sequence[RunRecord]) -> float:
    """Median wall seconds of valid runs outside their figure."""
    return statistics.median(record.wall_s - covered_s(record) for record in records)


def is_objective(record: RunRecord) -> bool:
    """Whether the figure is that of an own objective: the time of a run says nothing of it."""
    return record.metric_unit == OBJECTIVE


def least_ratio(stopped: RunRecord, near: Sequence[RunRecord], level_s: float) -> float | None:
    """The least ratio of the figure of a stopped run to that of others; None if nothing is known.

    ``near`` are valid runs to compare with, at least one; ``level_s`` are the seconds that their
    figures cover.
    """
    if any(is_objective(record) for record in near):
        return None
    return max(stopped.wall_s - outside_s(near), 0.0) / level_s
