"""The position of a rank: the data that compiled code has of its rank."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class Place:
    """A rank's numbers: global and in its process, of how many; its process, of how many."""

    rank: int
    local_rank: int
    size: int
    local_count: int
    process: int
    process_count: int
    workers: int
    """Threads that run the ranks of the process."""
