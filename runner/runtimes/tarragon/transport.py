"""Messages between processes: sent in place, received into buffers that become the messages.

A few receives from any process are always posted, as large as the graph's largest message. A
message keeps the buffer in which it arrived; the receive is reposted with a new one. Messages of
one process are delivered in the order in which they were sent.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.runtimes.tarragon.graph import Task
from runner.runtimes.tarragon.message import HEADER, ROOM, Message, pack, unpack

_RECEIVE_COUNT = 16
"""Receives that are posted at a time."""
_TAG = 1

Deliver = Callable[[Message, list[int]], None]


class Transport:
    """The messages of one process with all others.  ``limit``: bytes of the largest payload."""

    def __init__(
        self, comm: Any, limit: int, is_serialized: bool, aggregation_size: int, targets: int
    ) -> None:
        from mpi4py import MPI

        self._mpi = MPI
        self._comm = comm
        self._one_at_a_time: Any = threading.Lock() if is_serialized else contextlib.nullcontext()
        self._size = max(ROOM + limit + 8 * targets, aggregation_size)
        self._aggregation_size = aggregation_size
        self._buffers: list[NDArray[np.uint8]] = []
        self._receives: list[Any] = []
        self._sends: list[Any] = []
        self._parcels: list[tuple[Task, Message, NDArray[np.uint8]]] = []
        self._starting: deque[tuple[Any, tuple[Task, Message, NDArray[np.uint8]]]] = deque()
        """Messages started by workers and not handled yet."""
        self._numbers = [0] * comm.size
        self._next_numbers = [0] * comm.size
        self._early: dict[tuple[int, int], NDArray[np.uint8]] = {}
        self._batches: dict[int, list[NDArray[np.uint8]]] = {}
        self._lock = threading.Lock()
        """Held while a message gets its number and is started, so that numbers ascend."""
        self.sent_count = self.received_count = 0
        """Messages to and from other processes; those with several targets count once for each."""
        self.messages = self.bytes = 0
        for _ in range(_RECEIVE_COUNT):
            buffer = np.empty(self._size, np.uint8)
            self._buffers.append(buffer)
            self._receives.append(comm.Irecv([buffer, MPI.BYTE], MPI.ANY_SOURCE, _TAG))

    def send(
        self, process: int, targets: list[int], message: Message, task: Task, small: bool
    ) -> None:
        """Start a message to tasks of one process.  ``small``: it may wait to be packed together
        with others."""
        data = pack(message, targets, needs_copy=small)
        with self._lock:
            self.sent_count += len(targets)
            if small and len(data) <= self._aggregation_size // 2:
                batch = self._batches.setdefault(process, [])
                if sum(map(len, batch)) + len(data) > self._aggregation_size:
                    self._flush(process, task)
                    batch = self._batches.setdefault(process, [])
                batch.append(data)
            else:
                self._flush(process, task)
                self._start(process, data, task, message)

    def flush(self) -> None:
        """Send the messages that wait to be packed."""
        if self._batches:
            with self._lock:
                for process in list(self._batches):
                    self._flush(process, None)

    def _flush(self, process: int, task: Task | None) -> None:
        batch = self._batches.pop(process, None)
        if batch:
            self._start(process, batch[0] if len(batch) == 1 else np.concatenate(batch), task, None)

    def _start(
        self, process: int, data: NDArray[np.uint8], task: Task | None, message: Message | None
    ) -> None:
        data[:ROOM].view(HEADER)["number"] = self._numbers[process]
        self._numbers[process] += 1
        self.messages += 1
        self.bytes += len(data)
        with self._one_at_a_time:
            request = self._comm.Isend([data, self._mpi.BYTE], process, _TAG)
        self._starting.append((request, (task, message, data)))  # type: ignore[arg-type]

    @property
    def sending(self) -> bool:
        """True if a message has not left its buffer yet."""
        return bool(self._starting or self._sends or self._batches)

    def poll(self, deliver: Deliver) -> bool:
        """Deliver arrived messages and retire sent ones; one thread at a time calls this.

        Returns True if any arrived.
        """
        self.flush()
        while self._starting:
            request, what = self._starting.popleft()
            self._sends.append(request)
            self._parcels.append(what)
        statuses: list[Any] = []
        with self._one_at_a_time:
            send_indices = self._mpi.Request.Testsome(self._sends) if self._sends else None
            receive_indices = self._mpi.Request.Testsome(self._receives, statuses)
        for index in sorted(send_indices or [], reverse=True):
            task, message, _ = self._parcels[index]
            last, last_request = self._parcels.pop(), self._sends.pop()
            if index < len(self._sends):
                self._parcels[index], self._sends[index] = last, last_request
            if message is not None:
                task.vdestroy(message)
        for index, status in zip(receive_indices or [], statuses, strict=False):
            buffer, source = self._buffers[index], status.Get_source()
            length = status.Get_count(self._mpi.BYTE)
            fresh = np.empty(self._size, np.uint8)
            self._buffers[index] = fresh
            with self._one_at_a_time:
                self._receives[index] = self._comm.Irecv(
                    [fresh, self._mpi.BYTE], self._mpi.ANY_SOURCE, _TAG
                )
            number = int(buffer[:ROOM].view(HEADER)["number"][0])
            self._early[source, number] = buffer[:length]
        for source in {source for source, _ in self._early}:
            while (data := self._early.pop((source, self._next_numbers[source]), None)) is not None:
                self._next_numbers[source] += 1
                self._open(data, deliver)
        return bool(receive_indices)

    def _open(self, data: NDArray[np.uint8], deliver: Deliver) -> None:
        """Deliver the messages of a batch."""
        while len(data):
            message, targets, length = unpack(data)
            deliver(message, targets)
            # Counted last: a message that is not injected yet is still under way.
            self.received_count += len(targets)
            data = data[length:]

    def close(self) -> None:
        """Cancel the receives."""
        for request in self._receives:
            request.Cancel()
        self._mpi.Request.Waitall(self._receives)
