"""Distributions: which process holds which tasks (Cicotti 2011, Table 3.5)."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from typing import Protocol

from runner.runtimes.tarragon.errors import GraphError
from runner.runtimes.tarragon.maps import part


class Distribution(Protocol):
    """Every task is on exactly one process."""

    def locate(self, task: int) -> int:
        """The process of a task."""

    def tasks(self, process: int) -> Sequence[int]:
        """The tasks of a process, in ascending order (``range``)."""


class VariableDistribution:
    """Contiguous ranges of tasks; ``starts``: the first task of each process, from 0 on."""

    def __init__(self, size: int, starts: Sequence[int]) -> None:
        rising = all(a <= b for a, b in zip(starts, [*starts[1:], size], strict=True))
        if not starts or starts[0] != 0 or not rising:
            raise GraphError(
                f"first tasks {list(starts)} of the processes: expected ascending numbers from 0 "
                f"to {size}",
                code="tarragon.graph",
            )
        self.size = size
        self._starts = list(starts)

    def update(self, process: int, first: int) -> None:
        """Let a process start with another task; before the graph is created.

        Raises :class:`GraphError` if its range or its neighbour's would be reversed.
        """
        starts = list(self._starts)
        starts[process] = first
        self.__init__(self.size, starts)  # type: ignore[misc]

    def locate(self, task: int) -> int:
        return bisect.bisect_right(self._starts, task) - 1

    def tasks(self, process: int) -> range:
        ends = [*self._starts[1:], self.size]
        return range(self._starts[process], ends[process])


class RegularDistribution(VariableDistribution):
    """Ranges of equal length; the first ``size % processes`` ones have one more task."""

    def __init__(self, size: int, processes: int) -> None:
        super().__init__(size, [part(size, processes, n)[0] for n in range(processes)])


class SparseDistribution:
    """Any tasks on any process; ``owners``: the process of each task."""

    def __init__(self, owners: Iterable[int], processes: int) -> None:
        self._owners = list(owners)
        if any(not 0 <= owner < processes for owner in self._owners):
            raise GraphError(
                f"the process of a task: expected 0 to {processes - 1}", code="tarragon.graph"
            )
        self._tasks: list[list[int]] = [[] for _ in range(processes)]
        for task, owner in enumerate(self._owners):
            self._tasks[owner].append(task)

    def locate(self, task: int) -> int:
        return self._owners[task]

    def tasks(self, process: int) -> list[int]:
        return self._tasks[process]
