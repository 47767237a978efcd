"""Which process holds which ranks."""

from __future__ import annotations

from collections.abc import Sequence

from runner.mate.errors import ConfigError

MAX_LOCAL_RANKS = 256
"""Ranks per process, as in the original (Martin 2018, chapter 4)."""


class RankMap:
    """A partition of the global ranks 0..size-1 over the processes, in any order and size."""

    def __init__(self, ranks: Sequence[Sequence[int]]) -> None:
        self.ranks = tuple(tuple(r) for r in ranks)
        """For each process its global ranks, in the order of their local ids."""
        flat = [rank for process in self.ranks for rank in process]
        if sorted(flat) != list(range(len(flat))):
            raise ConfigError(
                "--rank-map: every global rank from 0 on must be named exactly once; "
                f"got {sorted(flat)}"
            )
        for number, process in enumerate(self.ranks):
            if not 1 <= len(process) <= MAX_LOCAL_RANKS:
                raise ConfigError(
                    f"--rank-map: process {number} has {len(process)} ranks; expected 1 to "
                    f"{MAX_LOCAL_RANKS}"
                )
        self.order = flat
        """Global ranks in the order process 0, process 1, ..."""
        self.locations = [(0, 0)] * len(flat)
        """For each global rank (process, local id)."""
        for number, process in enumerate(self.ranks):
            for local, rank in enumerate(process):
                self.locations[rank] = (number, local)

    @classmethod
    def uniform(cls, processes: int, per_process: int) -> RankMap:
        """Global rank = process * per_process + local id."""
        starts = range(0, processes * per_process, per_process)
        return cls([range(start, start + per_process) for start in starts])

    @property
    def size(self) -> int:
        return len(self.order)

    @property
    def largest(self) -> int:
        """Ranks in the process that has most."""
        return max(len(process) for process in self.ranks)
