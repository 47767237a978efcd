"""The interface of the scheduler for ranks, their messages and collectives, on either core.

:class:`runner.runtimes.mate.scheduler.RankScheduler` is the Python core,
:class:`runner.runtimes.mate.native.scheduler.NativeScheduler` the compiled one.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING, Protocol

from runner.runtimes.mate.task import Request, Task

if TYPE_CHECKING:
    from runner.runtimes.mate.log import EventLog


class Sleeping(Protocol):
    """The idle workers of a process."""

    @property
    def asleep(self) -> int:
        """Number of idle workers that sleep and were not woken."""
        ...


class SchedulingCore(Protocol):
    """The core that a job runs on."""

    tasks: list[Task]
    lock: threading.Lock
    log: EventLog | None

    @property
    def sleepers(self) -> Sleeping: ...

    @property
    def ready(self) -> object:
        """True in a condition if a rank waits for a worker."""
        ...

    def set_home(self, task: Task, worker: int) -> None: ...

    def call_poller(self, first: bool) -> None: ...

    def drain(self, task: Task) -> Awaitable[None]: ...

    # The following are called with the lock held.

    def wake(self, task: Task, urgent: bool = False) -> None: ...

    def call_workers(self) -> None: ...

    def complete(self, requests: Iterable[Request]) -> None: ...

    def add_neighbor(self, task: Task, neighbor: int) -> None: ...
