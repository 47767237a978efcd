"""Message layers: the layer without MPI, the interface of all layers, and their polling.

A layer starts messages, regularly checks for complete ones, and notifies the scheduler. The poller
decides which worker polls, and how often.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.runtimes.core.mpi_table import MessageTable
from runner.runtimes.core.words import KINDS
from runner.runtimes.mate.call_lock import CallLock
from runner.runtimes.mate.errors import MateError
from runner.runtimes.mate.scheduler_interface import SchedulingCore
from runner.runtimes.mate.tags import TagCodec
from runner.runtimes.mate.task import Request


def payload(buffer: Any) -> Any:
    """The buffer in mpi4py's form: a contiguous array, or ``[buffer, count, datatype]``.

    Raises :class:`MateError` for an array with gaps and for objects that are not buffers.
    """
    if isinstance(buffer, np.ndarray):
        if not buffer.flags.forc:
            raise MateError(
                f"an array of shape {buffer.shape} with strides {buffer.strides} is not "
                "contiguous: send a copy, or (array, count, datatype) with an MPI datatype",
                code="mate.message",
            )
        return buffer
    if isinstance(buffer, (tuple, list)) and len(buffer) == 3:
        return list(buffer)
    try:
        return np.frombuffer(buffer, dtype=np.uint8)
    except (TypeError, ValueError, AttributeError):
        raise MateError(
            f"a message needs a contiguous array or (buffer, count, datatype), not "
            f"{type(buffer).__name__}",
            code="mate.message",
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
    """The layer of one process without MPI: it has only messages between its own ranks."""

    process = 0
    processes = 1
    tag_ub = 2**31 - 1
    call_lock: CallLock | None = None
    """The lock around every MPI call while ranks run, if calls must not overlap."""
    direct = True
    """True if messages between ranks of one process use the mailbox and not this layer."""

    def __init__(self) -> None:
        self.scheduler: SchedulingCore
        self.incoming: list[tuple[Any, Request]] = []
        """Started messages that have not been polled yet, with their handles.

        Ranks append, the poller takes from the front; both are single steps of the interpreter.
        """
        self.with_status: list[tuple[Any, Request]] = []
        """The same for messages whose status is requested."""

    @property
    def pending(self) -> bool:
        """True if any message is under way that :meth:`poll` could find complete."""
        return False

    def share_lock(self, take: Callable[[], None], give: Callable[[], None]) -> None:
        """Let the lock around MPI calls include the one of compiled code."""

    def post(self, incoming: bool) -> Callable[[Any, int, int], Any]:
        """The function (buffer, process, tag) that starts a message and returns its handle."""
        raise MateError(
            "this job runs without MPI: there are no other processes", code="mate.message"
        )

    def wake_poller(self) -> None:
        """Handle a message that was started while workers sleep."""

    def collective(self, request: Request, name: str, source: Any, target: Any, *args: Any) -> None:
        """Begin the collective operation ``name`` of this process with all others.

        ``source`` and ``target`` are arrays, ``[array, counts]`` or None, as in mpi4py.
        """
        if target is not None:
            into = target[0] if isinstance(target, list) else target
            into[...] = source[0] if isinstance(source, list) else source
        self.deliver(request)

    def table(self, codec: TagCodec) -> MessageTable:
        """The data that compiled code needs to start messages itself."""
        return MessageTable(
            process=self.process,
            direct=self.direct,
            serialized=self.call_lock is not None,
            tag_bits=codec.local_bits,
            tag_top=codec.max_user_tag,
            kinds=[(0, np.dtype(name).itemsize) for name in KINDS],
        )

    def error_of(self, code: int, under_way: list[tuple[int, int, bool]]) -> MateError:
        """The error for a code that MPI returned to compiled code.

        ``under_way``: peer, tag and direction (True: receive) of its messages.
        """
        return MateError(f"MPI returned the error {code}", code="mate.message")

    def operation(self, name: str) -> Any:
        """The reduction that MPI calls ``name``."""
        return name

    def copy(self, source: Any, target: Any) -> None:
        """Copy a message with MPI datatypes within the process."""
        raise MateError(
            "messages with MPI datatypes need MPI: start with comm=...", code="mate.message"
        )

    def set_status(self, request: Request, size: int) -> None:
        """Fill the status of a message that was copied within the process."""
        raise MateError("a message's status needs MPI: start with comm=...", code="mate.message")

    def deliver(self, *requests: Request) -> None:
        """Handle complete messages; a rank's worker calls this without the lock."""
        scheduler = self.scheduler
        with scheduler.lock:
            scheduler.complete(requests)
            scheduler.call_workers()

    def poll(self) -> None:
        """Notify the scheduler of complete messages; one worker at a time calls this."""


_POLL_GAP = 20e-6
"""Shortest time in seconds between two polls of a busy worker."""
_POLL_SHARE = 3.0
"""A busy worker polls only after this multiple of the last poll's duration.

So polling takes a bounded share of the time for any number of requests.
"""


class Poller:
    """Lets one worker at a time poll for complete messages."""

    def __init__(self, transport: Transport, is_crowded: bool) -> None:
        self._transport = transport
        self._is_crowded = is_crowded
        self._lock = threading.Lock()
        self._next = 0.0

    def pause(self) -> None:
        """Pause between two polls: others use the core if there are more workers than cores."""
        if self._is_crowded:
            os.sched_yield()

    def poll_if_due(self) -> float:
        """Poll unless the last poll was very recent; returns the seconds it took."""
        return self.poll() if perf_counter() >= self._next else 0.0

    def poll(self) -> float:
        """Poll now and return the seconds it took; 0 if another worker polls."""
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
