"""How messages leave a rank: the layer without MPI, and what every layer offers.

A layer starts a message, looks from time to time which are complete, and tells the scheduler.

Who looks after messages, and how often.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.mate.errors import MateError
from runner.mate.scheduler import RankScheduler
from runner.mate.task import Request


def payload(buffer: Any) -> Any:
    """What mpi4py takes: a contiguous array as it is, or ``[buffer, count, datatype]``.

    Raises :class:`MateError` for an array with gaps and for anything that is no buffer.
    """
    if isinstance(buffer, np.ndarray):
        if not buffer.flags.forc:
            raise MateError(
                f"an array of shape {buffer.shape} with strides {buffer.strides} is not "
                "contiguous: send a copy, or (array, count, datatype) with an MPI datatype"
            )
        return buffer
    if isinstance(buffer, (tuple, list)) and len(buffer) == 3:
        return list(buffer)
    try:
        return np.frombuffer(buffer, dtype=np.uint8)
    except (TypeError, ValueError, AttributeError):
        raise MateError(
            f"a message needs a contiguous array or (buffer, count, datatype), not "
            f"{type(buffer).__name__}"
        ) from None


def size_of(data: Any) -> int:
    """Bytes of a :func:`payload`."""
    if isinstance(data, np.ndarray):
        return data.nbytes
    return int(data[1]) * int(data[2].Get_size())


def as_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The memory of a contiguous array, without a copy."""
    return array.reshape(-1, order="A").view(np.uint8)


class Transport:
    """One process without MPI: messages exist between its own ranks only."""

    process = 0
    processes = 1
    tag_ub = 2**31 - 1
    alone: AbstractContextManager[Any] | None = None
    """The lock round every MPI call while ranks run, where calls must not overlap."""
    direct = True
    """Messages between ranks of one process do not come here but go through the mailbox."""

    def __init__(self) -> None:
        self.scheduler: RankScheduler
        self.incoming: list[tuple[Any, Request]] = []
        """Messages that were started, with their handles, and not yet looked at.  Ranks append, the
        poller takes from the front: both are single steps of the interpreter."""
        self.with_status: list[tuple[Any, Request]] = []
        """The same for those whose status is wanted."""

    @property
    def pending(self) -> bool:
        """Whether anything is under way that :meth:`poll` could find complete."""
        return False

    def post(self, incoming: bool) -> Callable[[Any, int, int], Any]:
        """The function (buffer, process, tag) that starts a message and returns its handle."""
        raise MateError("this job runs without MPI: there are no other processes")

    def wake_poller(self) -> None:
        """A message was started while workers sleep."""

    def collective(self, request: Request, name: str, source: Any, target: Any, *args: Any) -> None:
        """Begin the collective operation ``name`` of this process with all others.

        ``source`` and ``target`` are arrays, ``[array, counts]`` or None as in mpi4py.
        """
        if target is not None:
            into = target[0] if isinstance(target, list) else target
            into[...] = source[0] if isinstance(source, list) else source
        self.delivered(request)

    def operation(self, name: str) -> Any:
        """The reduction that MPI calls ``name``."""
        return name

    def copy(self, source: Any, target: Any) -> None:
        """Copy a message with MPI datatypes within the process."""
        raise MateError("messages with MPI datatypes need MPI: start with comm=...")

    def set_status(self, request: Request, size: int) -> None:
        """Fill the status of a message that was copied within the process."""
        raise MateError("a message's status needs MPI: start with comm=...")

    def delivered(self, *requests: Request) -> None:
        """These messages are complete; called by a rank's worker without the lock."""
        scheduler = self.scheduler
        with scheduler.lock:
            scheduler.complete(requests)
            scheduler.call_workers()

    def poll(self) -> None:
        """Tell the scheduler what has become complete; one worker at a time calls this."""


_POLL_GAP = 20e-6
"""A busy worker looks after messages at most this often (seconds) ..."""
_POLL_SHARE = 3.0
"""... and not before this multiple of what the last look took, however many requests there are."""


class Poller:
    """Lets one worker at a time look which messages are complete."""

    def __init__(self, transport: Transport, crowded: bool) -> None:
        self._transport = transport
        self._crowded = crowded
        self._lock = threading.Lock()
        self._next = 0.0

    def pause(self) -> None:
        """Between two looks: let others use the core if there are more workers than cores."""
        if self._crowded:
            os.sched_yield()

    def poll_if_due(self) -> float:
        """Look, unless that was done a moment ago; the seconds it took."""
        return self.poll() if perf_counter() >= self._next else 0.0

    def poll(self) -> float:
        """Look now and return the seconds it took; 0 if another worker is at it."""
        if not self._lock.acquire(blocking=False):
            return 0.0
        try:
            begin = perf_counter()
            self._transport.poll()
            end = perf_counter()
            self._next = end + max(_POLL_GAP, _POLL_SHARE * (end - begin))
        finally:
            self._lock.release()
        return end - begin
