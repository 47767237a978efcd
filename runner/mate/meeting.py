"""Operations that all ranks take part in.

The ranks of a process meet; the last to come acts for the process, with one non-blocking MPI
operation that is looked after like any message: no worker blocks, other ranks go on.
"""

from __future__ import annotations

import types
from collections.abc import Generator
from typing import Any

from runner.mate.errors import MateError
from runner.mate.scheduler import Scheduler
from runner.mate.task import Task

LOCAL, GLOBAL = 0, 1


class Meeting:
    """One collective operation of the ranks of a process."""

    def __init__(self, kind: str, count: int) -> None:
        self.kind = kind
        self.given: list[Any] = [None] * count
        """What each local rank brought."""
        self.arrived: list[Task] = []
        self.over = False
        self.result: Any = None

    def describe(self) -> str:
        here = ", ".join(str(t.rank) for t in self.arrived[:8])
        more = ", ..." if len(self.arrived) > 8 else ""
        return (
            f"{self.kind}: {len(self.arrived)} of {len(self.given)} local ranks came ({here}{more})"
        )


class Meetings:
    """All operations of a process that are not over."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._open: dict[tuple[int, int], Meeting] = {}

    def arrive(self, task: Task, scope: int, kind: str, given: Any) -> tuple[Meeting, bool]:
        """Join the rank's next operation; True for the last to come, who must :meth:`close` it.

        Raises :class:`MateError` if another rank is in another operation.
        """
        scheduler = self._scheduler
        with scheduler.lock:
            number = task.sequence[scope]
            task.sequence[scope] += 1
            meeting = self._open.get((scope, number))
            if meeting is None:
                meeting = self._open[scope, number] = Meeting(kind, len(scheduler.tasks))
            elif meeting.kind != kind:
                raise MateError(
                    f"rank {task.rank} is in {kind}, but rank {meeting.arrived[0].rank} in "
                    f"{meeting.kind}: all ranks must call the same operations in the same order"
                )
            meeting.given[task.local] = given
            meeting.arrived.append(task)
            last = len(meeting.arrived) == len(meeting.given)
            if last:
                del self._open[scope, number]
            else:
                task.blocker = meeting
            return meeting, last

    def close(self, meeting: Meeting, result: Any = None) -> None:
        """Let all ranks of the operation go on."""
        scheduler = self._scheduler
        with scheduler.lock:
            meeting.result = result
            meeting.over = True
            for task in meeting.arrived[:-1]:
                task.blocker = None
                scheduler.wake(task)
            scheduler.call_workers()


@types.coroutine
def until_over(meeting: Meeting) -> Generator[None, None, None]:
    """Until somebody closes the meeting."""
    while not meeting.over:
        yield
