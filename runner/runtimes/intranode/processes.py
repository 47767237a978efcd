"""The processes of a node's ranks, and detection of their deaths."""

from __future__ import annotations

import os
from time import monotonic
from typing import Any

from runner.process import start_of
from runner.runtimes.intranode.errors import RankLost

_CHECK_S = 0.05
"""Seconds between two looks."""


class Processes:
    """The processes of the ranks of ``node``, created by all of them; ``name`` describes this
    rank."""

    def __init__(self, node: Any, name: str) -> None:
        own = os.getpid()
        self._rank: int = node.rank
        self._all: list[tuple[str, int, int | None]] = node.allgather((name, own, start_of(own)))
        self._check_time = 0.0

    def deaths(self) -> dict[int, str]:
        """The other dead ranks: number on the node and description; it checks only now and then."""
        now = monotonic()
        if now - self._check_time < _CHECK_S:
            return {}
        self._check_time = now
        return {
            number: f"{name} (process {pid})"
            for number, (name, pid, start) in enumerate(self._all)
            if number != self._rank and start_of(pid) != start
        }


def lost_rank_error(rank: str, dead: str) -> RankLost:
    """The error of a waiting rank; both arguments are text."""
    return RankLost(
        f"{rank} waits, but these have died: {dead}; look at their own messages, and start the "
        "program again",
        code="intranode.rank_lost",
    )
