"""The exchange of a box's faces by plain MPI, in one of four orders of calls.

S is a blocking send, R a blocking receive; I before it makes it nonblocking.

- ``SR``: MPI_Send and MPI_Recv in turn. Along each axis the processes with an even place in the
  process grid first exchange with the neighbour above, then with the one below, and they send
  first; those with an odd place do the opposite. So each send meets a receive, and no size of
  message can deadlock.
- ``ISR``: all sends are started, then the messages are received one by one.
- ``SIR``: all receives are posted, then the messages are sent one by one. Every process has posted
  before it sends, so no send waits for ever.
- ``ISIR``: all receives are posted and all sends started, then all are waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from runner.programs.apps.common.faces import Faces, Message
from runner.programs.apps.common.grid import Shape
from runner.programs.apps.common.meter import Meter
from runner.runtimes.tpod.config import POSTING

Turn = tuple[Callable[..., None], Message, bool]
"""A blocking call, its message, and True if it sends."""


class Exchange:
    """The messages of some faces, made once before the steps.

    ``place`` is the place of this process in the process grid. With ``prepost`` the receives of the
    next exchange are posted at the end of each; it needs an order whose receives do not block.
    """

    def __init__(self, comm: Any, faces: Faces, place: Shape, order: str, prepost: bool) -> None:
        from mpi4py import MPI

        self._comm, self._faces, self._prepost = comm, faces, prepost
        self._wait, self._test = MPI.Request.Waitall, MPI.Request.Testall
        self.remote = faces.remote
        """Axis and side of each message."""
        self._posts = order in POSTING
        self._starts = order in ("ISR", "ISIR")
        self._turns = _turns(comm, faces, place) if order == "SR" else None
        self._early_requests: list[Any] = []
        self.messages, self.bytes = len(faces.sends), faces.bytes
        """Numbers of messages and bytes sent in one exchange."""

    def run(self, field: int, meter: Meter, more: bool) -> None:
        """Fill the ghosts of a field; ``more``: another exchange will follow.

        A sending call counts as ``mpi``, a receiving or waiting one as ``waiting``.
        """
        if self._turns is None:
            self.finish(field, self.start(field, meter), meter, more)
            return
        meter.copy(self._faces.pack[field])
        self._take(self._turns, meter)
        meter.copy(self._faces.unpack[field])

    def start(self, field: int, meter: Meter) -> list[Any]:
        """Send the faces of a field; returns the requests for :meth:`finish`.

        Only for an order in which no process waits for a message before it sends: not ``SR``.
        """
        receives = self._early_requests or self._post(meter)
        meter.copy(self._faces.pack[field])
        return receives + self._send(meter)

    def progress(self, requests: list[Any], meter: Meter) -> None:
        """Let the MPI library make progress: most libraries do so only inside calls."""
        begin = perf_counter()
        self._test(requests)
        meter.mpi += perf_counter() - begin

    def finish(self, field: int, requests: list[Any], meter: Meter, more: bool) -> None:
        """Wait for the messages and fill the ghosts of the field; ``more`` as in :meth:`run`."""
        begin = perf_counter()
        if not self._posts:
            for message in self._faces.receives:
                self._comm.Recv(*message)
        self._wait(requests)
        meter.waiting += perf_counter() - begin
        meter.copy(self._faces.unpack[field])
        self._early_requests = self._post(meter) if self._prepost and more else []

    def _post(self, meter: Meter) -> list[Any]:
        if not self._posts:
            return []
        begin = perf_counter()
        requests = [self._comm.Irecv(*message) for message in self._faces.receives]
        meter.mpi += perf_counter() - begin
        return requests

    def _take(self, turns: list[Turn], meter: Meter) -> None:
        """Send and receive in turn."""
        for call, message, sends in turns:
            begin = perf_counter()
            call(*message)
            if sends:
                meter.mpi += perf_counter() - begin
            else:
                meter.waiting += perf_counter() - begin

    def _send(self, meter: Meter) -> list[Any]:
        """Send all, or start to; returns the requests."""
        comm, faces = self._comm, self._faces
        begin = perf_counter()
        sends = []
        if self._starts:
            sends = [comm.Isend(*message) for message in faces.sends]
        else:
            for message in faces.sends:
                comm.Send(*message)
        meter.mpi += perf_counter() - begin
        return sends


def _turns(comm: Any, faces: Faces, place: Shape) -> list[Turn]:
    """The calls of the order ``SR``."""
    turns = []
    for axis, position in enumerate(place):
        odd = position % 2
        for side in (0, 1) if odd else (1, 0):
            for number, face in enumerate(faces.remote):
                if face == (axis, side):
                    send = comm.Send, faces.sends[number], True
                    receive = comm.Recv, faces.receives[number], False
                    turns += [receive, send] if odd else [send, receive]
    return turns
