"""The interface for programs: messages, copies and sums, with help from waiting ranks."""

from __future__ import annotations

import os
from array import array as Words
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.runtimes.core.arena import Arena
from runner.runtimes.core.kernels import load
from runner.runtimes.intranode.cab_records import (
    ADD_REALS,
    ADD_WORDS,
    FLAG,
    LOCKING,
    MATCH,
    ME,
    MOVE,
    OVER,
    PLACES,
    REQUEST,
    SEAT,
    SENT,
)
from runner.runtimes.intranode.config import CAB, Config
from runner.runtimes.intranode.errors import IntranodeError, RegionError
from runner.runtimes.intranode.node import Node
from runner.runtimes.intranode.processes import lost_rank_error
from runner.runtimes.intranode.region import Region, elements

Array = NDArray[Any]
_LOOKS = 20000
"""Looks in compiled code before Python code checks if all ranks are alive."""
_BETWEEN_TESTS = 8
"""Looks between two tests of MPI's own requests."""


class Request:
    """A prepared or started message or operation.

    A prepared one may be restarted when it is over. It keeps its arrays alive.
    """

    def __init__(
        self, start: int, words: dict[int, int], arrays: Sequence[Array], text: str
    ) -> None:
        self._block = Words("q", bytes(REQUEST.size))
        self.address = self._block.buffer_info()[0]
        self.table = self.address + REQUEST.itself
        """The address of a table with only this request."""
        self.put(REQUEST.itself, self.address)
        for field, value in words.items():
            self.put(field, value)
        self.begin = start
        """The stage in which it begins."""
        self.arrays = arrays
        self.text = text

    def put(self, field: int, value: int) -> None:
        """Set a word of the record."""
        self._block[field >> 3] = value

    def get(self, field: int) -> int:
        """A word of the record."""
        return self._block[field >> 3]

    @property
    def over(self) -> bool:
        """True if it is over, or was not started."""
        return self.get(REQUEST.stage) == OVER


@dataclass(frozen=True)
class Chunks:
    """Chunks of a rank: done by itself, done by others for it, and done for others."""

    own: int
    given: int
    stolen: int


class Cab:
    """The library of a rank; created by all ranks of ``comm`` with the same configuration.

    Without ``config``, the one published for the machine is used (:mod:`.published`), or the
    default. Ranks are those of the node (``rank``, ``size``); one thread of a rank calls the
    library. All arrays must be shared: created by :meth:`zeros` or :meth:`shared_copy`. Raises the
    errors of :class:`Node`, and :class:`runner.errors.RunnerError` without both stored code and a
    compiler.
    """

    def __init__(self, comm: Any, config: Config | None = None, arena: Arena | None = None) -> None:
        self.config = config or CAB.machine_config()[0]
        code = load("runner.runtimes.intranode.progress").function
        self._wait, self._post = code("wait_all"), code("post")
        self._arrive, self._begin = code("arrive"), code("begin")
        self._node = Node(comm, self.config, arena)
        self.comm = self._node.comm
        """The communicator of the node."""
        self.rank, self.size = self._node.rank, self._node.size
        self.arena = self._node.arena
        self._me = self._node.me
        self._temporary: Array = np.zeros(0, np.uint8)
        self._active: dict[int, Request] = {}
        """Compiled code has the addresses of these requests."""
        self._barrier = Request(FLAG, {}, [], "a barrier")
        flag = np.zeros(1, np.int64)
        self._never = Request(FLAG, {REQUEST.place: flag.ctypes.data, REQUEST.value: 1}, [flag], "")

    # Memory.

    def zeros(self, shape: int | tuple[int, ...], dtype: Any = np.float64) -> Array:
        """A new shared array of zeros."""
        return self.arena.zeros(shape, dtype)

    def shared_copy(self, array: Array) -> Array:
        """A shared copy of an array."""
        return self.arena.copy(array)

    def arrays_of_all(self, array: Array) -> list[Array]:
        """The shared arrays of all ranks; each contributes one without gaps; collective."""
        outlines = self.comm.allgather((array.ctypes.data, array.shape, array.dtype.str))
        return [self.arena.view(*place) for place in outlines]

    # Operations on shared memory.

    def copy_init(self, target: Array, source: Array) -> Request:
        """Prepare a copy of all elements between arrays of the same size in bytes.

        Without gaps in ``target`` it is a pack, without gaps in ``source`` an unpack.
        """
        return self._work(MOVE, target, source, 0)

    def accumulate_init(self, target: Array, source: Array, at: int | None = None) -> Request:
        """Prepare to add ``source`` to ``target``.

        ``at``: the rank that owns the memory; ranks with the same ``at`` never add at the same
        time.
        """
        kinds = elements(target), elements(source)
        if kinds[0] != kinds[1]:
            raise RegionError(
                f"an array of {source.dtype} is added to one of {target.dtype}",
                code="intranode.array",
            )
        lock = 0 if at is None else self._node.seat(self._as_rank(at)) + SEAT.lock
        return self._work(ADD_REALS if kinds[0] == "reals" else ADD_WORDS, target, source, lock)

    def _work(self, operation: int, target: Array, source: Array, lock: int) -> Request:
        to, of = (Region.in_arena(array, self.arena) for array in (target, source))
        if to.size != of.size:
            raise RegionError(
                f"{of.size} bytes do not fit {to.size} bytes: expected the same size",
                code="intranode.array",
            )
        words = {REQUEST.operation: operation, REQUEST.bytes: of.size, REQUEST.lock: lock}
        words |= _words(REQUEST.address, of) | _words(REQUEST.target, to)
        return Request(LOCKING, words | self._between(of.size), [target, source], "an operation")

    def copy(self, target: Array, source: Array) -> None:
        """Copy all elements; others help."""
        self._now(self.copy_init(target, source))

    def pack(self, buffer: Array, face: Array) -> None:
        """Copy an array with gaps to one without."""
        self.copy(buffer, face)

    def unpack(self, face: Array, buffer: Array) -> None:
        """Copy an array without gaps to one with gaps."""
        self.copy(face, buffer)

    def accumulate(self, target: Array, source: Array, at: int | None = None) -> None:
        """Add ``source`` to ``target`` (see :meth:`accumulate_init`); others help."""
        self._now(self.accumulate_init(target, source, at))

    def _now(self, request: Request) -> None:
        self.start(request)
        self.wait(request)

    # Messages.

    def send_init(self, array: Array, dest: int, tag: int = 0) -> Request:
        """Prepare to send; it is over when the receiver has the data."""
        region = Region.in_arena(array, self.arena)
        words = {REQUEST.peer: self._as_rank(dest), REQUEST.tag: tag, REQUEST.bytes: region.size}
        words |= _words(REQUEST.address, region)
        return Request(SENT, words, [array], f"a message to rank {dest}")

    def recv_init(self, array: Array, source: int, tag: int = 0) -> Request:
        """Prepare to receive a message of the same size in bytes; the receiver copies it."""
        region = Region.in_arena(array, self.arena)
        words = {REQUEST.peer: self._as_rank(source), REQUEST.tag: tag, REQUEST.bytes: region.size}
        words |= _words(REQUEST.target, region) | self._between(0 if region.whole else region.size)
        return Request(MATCH, words, [array], f"a message from rank {source}")

    def isend(self, array: Array, dest: int, tag: int = 0) -> Request:
        """Start to send; the array must not change until the request is over."""
        return self.start(self.send_init(array, dest, tag))

    def irecv(self, array: Array, source: int, tag: int = 0) -> Request:
        """Start to receive; the message is copied while this rank waits for it."""
        return self.start(self.recv_init(array, source, tag))

    def send(self, array: Array, dest: int, tag: int = 0) -> None:
        """Send, and help others until the receiver has it."""
        self.wait(self.isend(array, dest, tag))

    def recv(self, array: Array, source: int, tag: int = 0) -> None:
        """Receive; others help with a large message, and this rank helps others until it
        arrives."""
        self.wait(self.irecv(array, source, tag))

    def _as_rank(self, rank: int) -> int:
        if not 0 <= rank < self.size:
            raise IntranodeError(
                f"rank {rank}: this node has the ranks 0 to {self.size - 1}", code="intranode.call"
            )
        return rank

    def _between(self, size: int) -> dict[int, int]:
        """Memory for packed data, if chunks are not packed and unpacked in one step."""
        if self.config.bundle or not size:
            return {}
        if self._temporary.size < size:
            self._temporary = self.zeros(size, np.uint8)
        return _words(REQUEST.between, Region(self._temporary.ctypes.data, size))

    # Waiting.

    def start(self, request: Request) -> Request:
        """Start a prepared request, which must be over.

        Raises :class:`IntranodeError` if too many messages to that rank are under way.
        """
        if not request.over:
            raise IntranodeError(
                f"{request.text} is started again before it is over", code="intranode.call"
            )
        if request.begin == SENT:
            if not self._post(self._me, request.address):
                raise IntranodeError(
                    f"{PLACES} messages are under way to rank {request.get(REQUEST.peer)}: wait "
                    "for some of them",
                    code="intranode.call",
                )
        else:
            self._begin(self._me, request.address, request.begin)
            self._active[request.address] = request
        return request

    def wait(self, request: Any) -> None:
        """Wait for a request of this library or of mpi4py, and help others meanwhile.

        Raises :class:`RankLost` if a rank of the node dies, and :class:`RegionError` if message and
        array differ in size.
        """
        if isinstance(request, Request):
            self._wait_own(request.table, 1)
            self._retire((request,))
        else:
            self._wait_with_mpi((), [request])

    def waitall(self, requests: Iterable[Any]) -> None:
        """The same for several."""
        every = list(requests)
        own = [request for request in every if isinstance(request, Request)]
        others = [request for request in every if not isinstance(request, Request)]
        if others:
            self._wait_with_mpi(own, others)
        else:
            table = np.array([request.address for request in own], np.int64)
            self._wait_own(table.ctypes.data, len(own))
        self._retire(own)

    def _retire(self, own: Sequence[Request]) -> None:
        """Forget requests that are over; raises the error of the first failed one."""
        problem = ""
        for request in own:
            self._active.pop(request.address, None)
            if request.get(REQUEST.failed):
                request.put(REQUEST.failed, 0)
                words = (REQUEST.run, REQUEST.n0, REQUEST.n1, REQUEST.n2)
                problem = problem or (
                    f"{request.text} has {prod(map(request.get, words))} bytes, the array "
                    f"{request.get(REQUEST.bytes)}: expected the same size"
                )
        if problem:
            raise RegionError(problem, code="intranode.array")

    def _wait_own(self, place: int, count: int) -> None:
        """Wait for the requests of the table at this address."""
        while self._wait(self._me, place, count, _LOOKS):
            # A rank may have done its part and ended.
            if (dead := self._node.deaths()) and self._wait(self._me, place, count, 1):
                raise lost_rank_error(f"rank {self.rank} of this node", dead)

    def _wait_with_mpi(self, own: Sequence[Request], others: list[Any]) -> None:
        """Also wait for MPI requests, which are tested now and then."""
        from mpi4py import MPI

        self._never.put(REQUEST.stage, FLAG)
        table = np.array([request.address for request in (*own, self._never)], np.int64)
        place, count = table.ctypes.data, len(table)
        dead = ""
        while True:
            left = self._wait(self._me, place, count, _BETWEEN_TESTS) - 1
            if MPI.Request.Testall(others) and not left:
                return
            if dead:
                raise lost_rank_error(f"rank {self.rank} of this node", dead)
            dead = self._node.deaths()
            if self._node.get(ME.spins) >= 0:
                os.sched_yield()

    def barrier(self) -> None:
        """Wait for all ranks of the node, and help others meanwhile."""
        if not self._barrier.over:
            raise IntranodeError(
                "a barrier is entered while another one is under way", code="intranode.call"
            )
        self._arrive(self._me, self._barrier.address)
        self._wait_own(self._barrier.table, 1)

    # The rest.

    @property
    def steals(self) -> bool:
        """True if this rank helps others while it waits; it may be set."""
        return bool(self._node.get(ME.steals))

    @steals.setter
    def steals(self, value: bool) -> None:
        self._node.put(ME.steals, int(value))

    def configure(self, config: Config) -> None:
        """Continue with another configuration; no request of this rank may be under way."""
        self.config = config
        self._node.apply(config)

    @property
    def chunks(self) -> Chunks:
        """Chunks so far."""
        return Chunks(*map(self._node.get, (ME.own, ME.given, ME.stolen)))

    def close(self) -> None:
        """End, all ranks together; arrays stay valid."""
        self.barrier()
        self._node.close()


def _words(first: int, region: Region) -> dict[int, int]:
    """The words of a region in a record, from this field on."""
    return {first + 8 * n: word for n, word in enumerate(region.words())}
