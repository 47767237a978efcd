"""The layer with MPI: messages through MPI, with all requests of a process tested together.

A worker never blocks in MPI. Started requests are in one list. The worker that polls calls one
``Testsome`` on it, which also drives the library's progress.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Any

from runner.runtimes.core.mpi_table import MessageTable, addresses
from runner.runtimes.mate.call_lock import CallLock
from runner.runtimes.mate.errors import MateError
from runner.runtimes.mate.tags import TagCodec
from runner.runtimes.mate.task import Request
from runner.runtimes.mate.transport import Transport

Call = Callable[..., Any]


class MpiTransport(Transport):
    """All processes of a communicator; it is duplicated, so that no foreign message can match."""

    def __init__(self, comm: Any, is_serialized: bool, direct: bool) -> None:
        super().__init__()
        from mpi4py import MPI

        self._mpi = MPI
        self.comm = comm.Dup()
        self.process = self.comm.rank
        self.processes = self.comm.size
        # In some libraries only the world has it.
        tag_ub: Any = MPI.COMM_WORLD.Get_attr(MPI.TAG_UB)
        self.tag_ub = int(tag_ub)
        self.direct = direct
        self.call_lock = CallLock() if is_serialized else None
        # Bound here, before the guard replaces blocking calls.
        self._isend = self._call(self.comm.Isend)
        self._irecv = self._call(self.comm.Irecv)
        self._testsome = self._call(MPI.Request.Testsome)
        self._sendrecv = self._call(MPI.COMM_SELF.Sendrecv)
        self._raw: list[Any] = []
        self._requests: list[Request] = []

    def _call(self, function: Call) -> Call:
        """The function, under the lock of thread level "serialized" if that level was chosen."""
        lock = self.call_lock
        if lock is None:
            return function

        def call(*args: Any) -> Any:
            with lock:
                return function(*args)

        return call

    def share_lock(self, take: Callable[[], None], give: Callable[[], None]) -> None:
        if self.call_lock is not None:
            self.call_lock.share(take, give)

    @property
    def pending(self) -> bool:
        # In the order in which messages move between the lists: this check can miss none.
        return bool(self.incoming or self._requests or self.with_status)

    def post(self, incoming: bool) -> Call:
        return self._irecv if incoming else self._isend

    def wake_poller(self) -> None:
        self.scheduler.call_poller(len(self.incoming) + len(self.with_status) == 1)

    def collective(self, request: Request, name: str, source: Any, target: Any, *args: Any) -> None:
        request.buffer = (source, target)
        arguments = {"Ibarrier": (), "Ibcast": (source,)}.get(name, (source, target))
        # These calls and those that read a status, a type or an operation are not bound here: the
        # guard takes the lock in them.
        raw = getattr(self.comm, name)(*arguments, *args)
        self.incoming.append((raw, request))
        if self.scheduler.sleepers.asleep:
            self.wake_poller()

    def table(self, codec: TagCodec) -> MessageTable:
        return dataclasses.replace(super().table(codec), **addresses(self._mpi, self.comm))

    def error_of(self, code: int, under_way: list[tuple[int, int, bool]]) -> MateError:
        receipts = [f"from rank {peer} (tag {tag})" for peer, tag, into in under_way if into][:4]
        return MateError(
            f"MPI could not start or complete a message ({self._mpi.Get_error_string(code)}): a "
            "receive buffer smaller than its message does that; receives of compiled regions "
            f"under way: {'; '.join(receipts) or 'none'}",
            code="mate.message",
        )

    def operation(self, name: str) -> Any:
        return getattr(self._mpi, name.upper())

    def copy(self, source: Any, target: Any) -> None:
        # Threads may copy concurrently; the thread's number as tag separates the copies.
        tag = threading.get_native_id() % 32768
        self._sendrecv(source, 0, tag, target, 0, tag)

    def set_status(self, request: Request, size: int) -> None:
        request.status.Set_elements(self._mpi.BYTE, size)
        self._address_status(request)

    def poll(self) -> None:
        if self.incoming:
            self._look_after(len(self.incoming))
        if self._raw:
            complete = self.test(self._raw)
            if len(complete) == len(self._raw):
                self._take_all()
            elif complete:
                self._take_out(sorted(complete, reverse=True))
        if self.with_status:
            self._test_with_status()

    def _look_after(self, count: int) -> None:
        """Move the first ``count`` new messages to the tested ones.

        Each message is always in one of the lists, because another worker may be checking whether
        any message is under way.
        """
        raw, requests = zip(*self.incoming[:count], strict=True)
        self._raw += raw
        self._requests += requests
        del self.incoming[:count]

    def test(self, raw: list[Any]) -> list[int]:
        """Indices of the complete MPI requests."""
        try:
            return self._testsome(raw) or []
        except self._mpi.Exception as error:
            raise self._explain(error) from error

    def _explain(self, error: Exception) -> MateError:
        """The error with an explanation.

        MPI does not say which request failed; usually a receive buffer is too short.
        """
        receipts = [r for r in self._requests if r.route and r.route.incoming][:4]
        receives = "; ".join(f"rank {r.task.rank}: {r.describe()}" for r in receipts)
        return MateError(
            f"MPI could not complete a message ({error}): a receive buffer smaller than its "
            f"message does that; receives under way: {receives or 'none'}",
            code="mate.message",
        )

    def _take_all(self) -> None:
        with self.scheduler.lock:
            self.scheduler.complete(self._requests)
            self._requests.clear()
            self._raw.clear()

    def _take_out(self, indices: list[int]) -> None:
        """Complete the requests at these indices (descending); the last one fills the gap."""
        scheduler = self.scheduler
        requests, raw = self._requests, self._raw
        with scheduler.lock:
            scheduler.complete([requests[index] for index in indices])
            for index in indices:
                last, last_raw = requests.pop(), raw.pop()
                if index < len(raw):
                    requests[index], raw[index] = last, last_raw

    def _test_with_status(self) -> None:
        for item in list(self.with_status):
            raw, request = item
            if self._test(raw, request):
                self._address_status(request)
                with self.scheduler.lock:
                    self.with_status.remove(item)
                    self.scheduler.complete((request,))

    def _test(self, raw: Any, request: Request) -> bool:
        try:
            return bool(raw.Test(request.status))
        except self._mpi.Exception as error:
            raise self._explain(error) from error

    def _address_status(self, request: Request) -> None:
        """Replace MPI's process and wire tag by rank and tag."""
        assert request.route is not None
        request.status.source = request.route.peer
        request.status.tag = request.route.tag

    def close(self) -> None:
        """Free the duplicated communicator; collective."""
        self.comm.Free()
