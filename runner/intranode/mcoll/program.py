"""A plan as a program in memory: addresses, and persistent requests of MPI."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.intranode.mcoll.plan import Message, Place, Plan
from runner.intranode.mcoll.words import (
    ARRIVE,
    AWAIT,
    BASES,
    CLEAR,
    COMBINE,
    COPY,
    END,
    SIGNAL,
    START,
    STEP,
    WAIT,
)

_KINDS = {
    "copy": COPY,
    "combine": COMBINE,
    "arrive": ARRIVE,
    "await": AWAIT,
    "signal": SIGNAL,
    "clear": CLEAR,
    "start": START,
    "wait": WAIT,
}
_TAG = 1
View = Callable[[int, int], NDArray[Any]]


@dataclass(frozen=True)
class Counts:
    """Messages and bytes that this rank has sent to other nodes."""

    messages: int
    bytes: int


class Program:
    """The program of a plan in the node's memory at ``work``.

    ``barrier``: the address of the node's counter; ``code``: kind and operation of elements;
    ``view``: bytes of shared memory (address, size) as an array; ``comm``: between the nodes.
    """

    def __init__(
        self, plan: Plan, work: int, barrier: int, code: int, view: View, comm: Any
    ) -> None:
        words = STEP.size >> 3
        self._table = np.zeros((len(plan.steps) + 1, words), np.int64)
        self._requests: list[Any] = []
        self._handles: dict[tuple[Message, ...], NDArray[Any]] = {}
        self.address: int = self._table.ctypes.data
        self.most = 0
        """Requests that are under way at once."""
        for row, step in zip(self._table, plan.steps, strict=False):
            row[STEP.kind >> 3] = _KINDS[step.kind]
            row[STEP.code >> 3] = code
            places = {"to": step.to, "a": step.a, "b": step.b}
            for name, (base, offset) in places.items():
                row[getattr(STEP, f"{name}_base") >> 3] = BASES[base]
                row[getattr(STEP, name) >> 3] = offset + (work if base == "work" else 0)
            row[STEP.count >> 3] = step.count
            if step.kind == "arrive" or (step.kind == "await" and step.count == 0):
                self._set(row, BASES["work"], barrier)
            if step.messages:
                self._message_step(row, step.messages, work, view, comm)
        self._table[-1, STEP.kind >> 3] = END

    @staticmethod
    def _set(row: NDArray[Any], base: int, address: int) -> None:
        row[STEP.to_base >> 3], row[STEP.to >> 3] = base, address

    def _message_step(
        self, row: NDArray[Any], messages: tuple[Message, ...], work: int, view: View, comm: Any
    ) -> None:
        """Fill the row of START or WAIT, which name the same handles."""
        if messages not in self._handles:
            self._handles[messages] = self._made(messages, work, view, comm)
        sent = [message.size for message in messages if message.sends]
        self._set(row, BASES["work"], self._handles[messages].ctypes.data)
        row[STEP.count >> 3] = len(messages)
        row[STEP.a >> 3], row[STEP.b >> 3] = len(sent), sum(sent)
        self.most = max(self.most, len(messages))

    def _made(
        self, messages: tuple[Message, ...], work: int, view: View, comm: Any
    ) -> NDArray[Any]:
        """The handles of persistent requests, one behind the other."""
        from mpi4py import MPI

        size = MPI._sizeof(MPI.Request)
        handles = np.zeros(len(messages) * size, np.uint8)
        for n, message in enumerate(messages):
            place: Place = message.place
            data = view(work + place.offset, message.size)
            make = comm.Send_init if message.sends else comm.Recv_init
            request = make([data, MPI.BYTE], message.peer, _TAG)
            self._requests.append(request)
            handle = ctypes.string_at(MPI._addressof(request), size)
            handles[n * size : (n + 1) * size] = np.frombuffer(handle, np.uint8)
        return handles

    def free(self) -> None:
        """Give the requests back; nothing of it is under way."""
        for request in self._requests:
            request.Free()
        self._requests.clear()
