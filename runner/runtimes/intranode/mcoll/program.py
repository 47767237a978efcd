"""A plan as a program in memory: addresses, and persistent requests of MPI."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.runtimes.intranode.mcoll import program_records
from runner.runtimes.intranode.mcoll.plan import Message, Plan
from runner.runtimes.intranode.mcoll.program_records import BASES, STEP

_TAG = 1
View = Callable[[int, int], NDArray[Any]]


class Counts(NamedTuple):
    """Messages and bytes that a rank has sent to other nodes."""

    messages: int
    bytes: int


class Program:
    """The program of a plan in the node's memory at ``work``.

    ``barrier``: the address of the node's counter; ``code``: kind and operation of elements;
    ``view``: bytes of shared memory (address, size) as an array; ``comm``: between the nodes;
    ``piece``: maximum bytes of an MPI message, 0: unlimited.
    """

    def __init__(
        self, plan: Plan, work: int, barrier: int, code: int, view: View, comm: Any, piece: int = 0
    ) -> None:
        # After the last step there is an END, which is 0.
        self._table = np.zeros((len(plan.steps) + 1, STEP.size >> 3), np.int64)
        self.address: int = self._table.ctypes.data
        self._work, self._view, self._comm, self._piece = work, view, comm, piece
        self._requests: list[Any] = []
        self._handles: dict[tuple[Message, ...], NDArray[Any]] = {}
        self.most = 0
        """Maximum number of requests under way at once."""
        for row, step in zip(self._table, plan.steps, strict=False):
            fields = {
                "kind": getattr(program_records, step.kind.upper()),
                "code": code,
                "count": step.count,
            }
            for name, (base, offset) in (("to", step.to), ("a", step.a), ("b", step.b)):
                fields[f"{name}_base"] = BASES[base]
                fields[name] = offset + (work if base == "work" else 0)
            if step.kind == "arrive" or (step.kind == "await" and not step.count):
                fields |= {"to_base": BASES["work"], "to": barrier}
            if step.messages:
                fields |= self._message_step(step.messages)
            for name, value in fields.items():
                row[getattr(STEP, name) >> 3] = value

    def _message_step(self, messages: tuple[Message, ...]) -> dict[str, int]:
        """The fields of START or WAIT, which name the same handles."""
        from mpi4py import MPI

        if messages not in self._handles:
            self._handles[messages] = self._make_handles(messages)
        handles = self._handles[messages]
        count = handles.size // MPI._sizeof(MPI.Request)
        self.most = max(self.most, count)
        send_sizes = [message.size for message in messages if message.sends]
        return {
            **{"to_base": BASES["work"], "to": handles.ctypes.data},
            **{"count": count, "a": len(send_sizes), "b": sum(send_sizes)},
        }

    def _make_handles(self, messages: tuple[Message, ...]) -> NDArray[Any]:
        """The handles of persistent requests, consecutively."""
        from mpi4py import MPI

        handles = b""
        for message in messages:
            make = self._comm.Send_init if message.sends else self._comm.Recv_init
            place, piece = self._work + message.place.offset, self._piece or message.size
            for at in range(0, message.size, piece):
                data = self._view(place + at, min(piece, message.size - at))
                self._requests.append(make([data, MPI.BYTE], message.peer, _TAG))
                address = MPI._addressof(self._requests[-1])
                handles += ctypes.string_at(address, MPI._sizeof(MPI.Request))
        return np.frombuffer(bytearray(handles), np.uint8)

    def free(self) -> None:
        """Free the requests; none is under way."""
        for request in self._requests:
            request.Free()
        self._requests.clear()
