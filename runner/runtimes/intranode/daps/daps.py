"""The interface for programs: windows, messages and barriers, with progress made for each other."""

from __future__ import annotations

import atexit
import os
import socket
import struct
import threading
from array import array as Words
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.runtimes.core.kernels import load
from runner.runtimes.core.memory import Memory
from runner.runtimes.intranode.daps.config import DAPS, Config
from runner.runtimes.intranode.daps.daps_records import (
    BEAT,
    BUFFERS,
    EAGER,
    ME,
    MESSAGE,
    OFFER,
    OVER,
    OWNER,
    PLACES,
    REQUEST,
    ROUNDS,
    STARTED,
)
from runner.runtimes.intranode.daps.owners import Owners
from runner.runtimes.intranode.daps.sockets import agree
from runner.runtimes.intranode.daps.window import Outline, Window, outline_of
from runner.runtimes.intranode.errors import ConfigError, IntranodeError, RegionError
from runner.runtimes.intranode.processes import lost_rank_error
from runner.runtimes.intranode.region import Region
from runner.runtimes.intranode.switches import spins

Array = NDArray[Any]
_LOOKS = 500
"""Looks in compiled code before Python code checks if all ranks are alive."""


class Request:
    """A started send or receive; it keeps its array alive."""

    def __init__(self, words: NDArray[np.int64], array: Array, text: str) -> None:
        self.words, self.array, self.text = words, array, text
        self.is_retired = False
        """True after the wait for it: its record may be reused."""

    @property
    def over(self) -> bool:
        """True if it is over."""
        return self.is_retired or int(self.words[REQUEST.stage >> 3]) == OVER


@dataclass(frozen=True)
class Counts:
    """Steps of progress with an effect: by this rank for itself, by others (or its progress thread)
    for it, and by it (or this thread) for others.
    """

    own: int
    given: int
    stolen: int


class Daps:
    """The library of a rank; created by all ranks of ``comm`` with the same configuration.

    Without ``config``, the one published for the machine is used, or the default. ``nodes``: assume
    this number of nodes, contiguous groups of ranks of one machine; 0: the real nodes. One thread
    of a rank calls the library. Arrays are shared: created by :meth:`zeros`. Raises
    :class:`IntranodeError` and :class:`runner.errors.RunnerError` in all ranks.
    """

    def __init__(self, comm: Any, config: Config | None = None, nodes: int = 0) -> None:
        self.config = config or DAPS.machine_config()[0]
        code = load("runner.runtimes.intranode.daps.progress").function
        self._issue, self._begin = code("issue"), code("begin_receive")
        self._await, self._serve, self._expect = code("wait_for"), code("serve"), code("expect")
        self._owners = Owners(comm, self.config, nodes)
        self.comm, self.arena = comm, self._owners.arena
        self.rank: int = comm.rank
        self.size: int = comm.size
        self.nodes = self._owners.nodes
        """The number of the node of each rank."""
        self._me, self._helper = (self._owners.knowledge(helper) for helper in (False, True))
        self._thread: threading.Thread | None = None
        self._thread_place: tuple[set[int], int] | None = None
        self._message = Words("q", bytes(MESSAGE.size))
        self._place = self._message.buffer_info()[0]
        self._issue_counts, self._send_counts = [0] * self.size, [0] * self.size
        self._epochs = [0, 0]
        self._cell: NDArray[np.int64] = self.zeros(2, np.int64)
        self._free: list[NDArray[np.int64]] = []
        self.users: list[int] = []
        """The computing ranks; the others only make progress (ghosts)."""
        self._apply(self.config)

    # Memory.

    def zeros(self, shape: int | tuple[int, ...], dtype: Any = np.float64) -> Array:
        """A new shared array of zeros."""
        return self.arena.zeros(shape, dtype)

    def shared_copy(self, array: Array) -> Array:
        """A shared copy of an array."""
        return self.arena.copy(array)

    def region(self, array: Array) -> Region:
        """The elements of a shared array; raises :class:`RegionError` for other arrays."""
        return Region.in_arena(array, self.arena)

    def as_rank(self, rank: int) -> int:
        """The rank; raises :class:`IntranodeError` if it does not exist."""
        if not 0 <= rank < self.size:
            raise IntranodeError(
                f"rank {rank}: expected 0 to {self.size - 1}", code="intranode.call"
            )
        return rank

    # Windows and operations on them.

    def window(self, array: Array) -> Window:
        """A window on a shared array of each rank, which may be empty; collective.

        Raises :class:`RegionError` in all ranks if one has an array that is not shared.
        """
        problem = ""
        try:
            self.region(array)
        except RegionError as error:
            problem = str(error)
        agree(self.comm, problem, RegionError)
        self._expect(self._me.address, int(array.nbytes > 0))
        window = Window(self, self.comm.allgather(outline_of(array)))
        self.barrier()
        return window

    def free(self, own: Outline) -> None:
        """End the window whose own array this is (:meth:`Window.free`); collective."""
        self.flush()
        self.barrier()
        self._expect(self._me.address, -int(np.prod(own[1]) > 0))

    def operate(self, kind: int, rank: int, far: Region, own: Region) -> None:
        """Start an operation on memory of another rank; it waits while too many are under way."""
        self._tell(kind, rank, own.size, (0, 0, 0), far, own)

    def fetch(self, kind: int, rank: int, far: Region, value: int) -> int:
        """An operation whose result is a number; waits for it."""
        self._cell[0] = 0
        cell = self._cell.ctypes.data
        self._tell(kind, rank, 0, (0, cell, value), far, far)
        self._wait([(cell, 1)])
        return int(self._cell[1])

    def _tell(
        self, kind: int, rank: int, size: int, more: tuple[int, int, int], far: Region, own: Region
    ) -> None:
        """Send a message that expects an answer; ``more``: tag, request and value."""
        if self._issue_counts[rank] - self._owners.done_counts[rank] >= PLACES:
            self._wait([self._completion(rank, self._issue_counts[rank] - PLACES + 1)])
        self._issue_counts[rank] += 1
        self._send(rank, [kind, size, self.rank, *more], far.words() + own.words())

    def _send(self, rank: int, words: Sequence[int], regions: Sequence[int] = ()) -> None:
        struct.pack_into(f"={len(words)}q", self._message, 0, *words)
        if regions:
            struct.pack_into(f"={len(regions)}q", self._message, MESSAGE.address, *regions)
        self._patient(self._issue, rank, self._place)

    def _patient(self, call: Any, *words: int) -> None:
        """Repeat a call that fails while another rank makes this one's progress."""
        while not call(self._me.address, *words, _LOOKS):
            if (dead := self._owners.deaths()) and not call(self._me.address, *words, 1):
                raise lost_rank_error(f"rank {self.rank}", dead)

    def _completion(self, rank: int, count: int) -> tuple[int, int]:
        return self._owners.done_counts.ctypes.data + 8 * rank, count

    def flush(self, rank: int | None = None) -> None:
        """Wait until all operations on the memory of a rank are over; None: of all ranks."""
        ranks = range(self.size) if rank is None else (self.as_rank(rank),)
        self._wait([self._completion(other, self._issue_counts[other]) for other in ranks])

    # Messages.

    def isend(self, array: Array, dest: int, tag: int = 0) -> Request:
        """Start to send; the array must not change before it is over.

        Raises :class:`IntranodeError` if too many messages to that rank have no receive.
        """
        region, under_way = self.region(array), self._send_counts[self.as_rank(dest)]
        under_way -= int(self._owners.seen_counts[dest])
        if under_way >= PLACES:
            raise IntranodeError(
                f"{PLACES} messages to rank {dest} have no receive: wait for some of them",
                code="intranode.call",
            )
        request = self._request(array, region, dest, tag, f"a message to rank {dest}")
        place = request.words.ctypes.data
        eager = region.size <= self.config.eager and under_way < BUFFERS
        self._send_counts[dest] += 1
        words = [EAGER if eager else OFFER, region.size, self.rank, tag, place, place]
        self._send(dest, words, [0] * 8 + region.words())
        return request

    def irecv(self, array: Array, source: int, tag: int = 0) -> Request:
        """Start to receive a message with this tag, of the array's size in bytes."""
        text = f"a message from rank {source}"
        request = self._request(array, self.region(array), self.as_rank(source), tag, text)
        self._patient(self._begin, request.words.ctypes.data)
        return request

    def _request(self, array: Array, region: Region, peer: int, tag: int, text: str) -> Request:
        words = self._free.pop() if self._free else self.zeros(REQUEST.size >> 3, np.int64)
        net = self.nodes[peer] != self.nodes[self.rank]
        words[: REQUEST.next >> 3] = [STARTED, peer, tag, region.size, 0, int(net)]
        first = REQUEST.address >> 3
        words[first : first + 8] = region.words()
        return Request(words, array, text)

    def send(self, array: Array, dest: int, tag: int = 0) -> None:
        """Send, and wait until the array may change."""
        self.wait(self.isend(array, dest, tag))

    def recv(self, array: Array, source: int, tag: int = 0) -> None:
        """Receive."""
        self.wait(self.irecv(array, source, tag))

    def wait(self, request: Request) -> None:
        """Wait for a request (see :meth:`waitall`)."""
        self.waitall((request,))

    def waitall(self, requests: Iterable[Request]) -> None:
        """Wait for requests; this rank makes its own progress, then that of others.

        Raises :class:`RankLost` if a rank that may be needed dies, and :class:`RegionError` if
        message and array differ in size.
        """
        every = [one for one in requests if not one.is_retired]
        self._wait([(one.words.ctypes.data + REQUEST.stage, OVER) for one in every])
        problem = ""
        for one in every:
            failure = int(one.words[REQUEST.failed >> 3])
            if failure and not problem:
                problem = (
                    f"{one.text} has {failure - 1} bytes, the array "
                    f"{int(one.words[REQUEST.bytes >> 3])}: expected the same size"
                )
            if not one.is_retired:
                self._free.append(one.words)
                one.is_retired = True
        if problem:
            raise RegionError(problem, code="intranode.array")

    # Waiting.

    def _wait(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Wait until these words have at least these values."""
        table = Words("q", [word for pair in pairs for word in pair] or [0])
        place, count = table.buffer_info()[0], len(pairs)
        while self._await(self._me.address, place, count, _LOOKS):
            # A rank may have done its part and ended.
            if (dead := self._owners.deaths()) and self._await(self._me.address, place, count, 1):
                raise lost_rank_error(f"rank {self.rank}", dead)

    def barrier(self, users: bool = False) -> None:
        """Wait for all ranks, or with ``users`` for the computing ones, which alone may call it.

        Operations on windows need a flush before.
        """
        group, members = int(users), self.users if users else range(self.size)
        self._epochs[group] += 1
        own, distance = members.index(self.rank), 1
        for number in range(ROUNDS):
            if distance >= len(members):
                break
            beat = group * ROUNDS + number
            words = [BEAT, 0, self.rank, 0, 0, beat]
            self._send(members[(own + distance) % len(members)], words)
            place = self._owners.beats.ctypes.data + 8 * beat
            self._wait([(place, self._epochs[group])])
            distance *= 2
        # Outside of the library this rank may send nothing for long.
        self._wait([(self._owners.record.ctypes.data + OWNER.unsent, 0)])

    # The rest.

    @property
    def ghost(self) -> bool:
        """True if this rank computes nothing; it calls :meth:`barrier` and helps there."""
        return self.rank not in self.users

    @property
    def steals(self) -> bool:
        """True if this rank makes progress for others while it waits; it may be set."""
        return bool(self._get(self._me, ME.steals))

    @steals.setter
    def steals(self, value: bool) -> None:
        self._put(self._me, ME.steals, int(value))

    @property
    def connections(self) -> list[socket.socket]:
        """The connections of this rank, in the order of the ranks of other nodes."""
        return self._owners.connections

    def record_of(self, rank: int) -> NDArray[np.int64]:
        """The record (``OWNER``) of a rank of this node."""
        place = self._owners.addresses[self._owners.locals.index(rank)]
        return self.arena.view(place, OWNER.size >> 3, np.int64)

    @property
    def counts(self) -> Counts:
        """Steps so far."""
        stolen_steps = sum(self._get(one, ME.stolen) for one in (self._me, self._helper))
        own, given_steps = (int(self._owners.record[f >> 3]) for f in (OWNER.own, OWNER.given))
        return Counts(own, given_steps, stolen_steps)

    def _put(self, me: Memory, field: int, value: int) -> None:
        me.put(me.address + field, value)

    def _get(self, me: Memory, field: int) -> int:
        return me.get(me.address + field)

    def configure(self, config: Config) -> None:
        """Continue with another configuration; collective, while nothing is under way.

        Raises :class:`ConfigError` in all ranks for an impossible one; then the present one stays.
        """
        self.barrier()
        self._end_thread()
        self._apply(config)

    def _apply(self, config: Config) -> None:
        owners, problem = self._owners, ""
        by_node = [[r for r in range(self.size) if self.nodes[r] == n] for n in set(self.nodes)]
        ghosts = config.ghost_count
        place: tuple[set[int], int] | None = None
        try:
            if ghosts >= min(map(len, by_node)):
                raise ConfigError(
                    f"--ghosts {ghosts}: a node has {min(map(len, by_node))} ranks; expected fewer "
                    "ghosts than ranks of each node",
                    code="intranode.option",
                )
            if config.eager > owners.eager:
                raise ConfigError(
                    f"--eager {config.eager} is above {owners.eager}, with which the library "
                    "began: start it with the largest",
                    code="intranode.option",
                )
            if config.thread_place == "dedicated":
                place = owners.cores()
        except ConfigError as error:
            problem = str(error)
        try:
            agree(self.comm, problem, ConfigError)
        except ConfigError:
            self._start_thread(self._thread_place)
            raise
        self.config = config
        self.users = sorted(r for ranks in by_node for r in ranks[: len(ranks) - ghosts])
        owners.beats[ROUNDS:] = 0
        self._epochs[1] = 0
        threads = 2 if config.progress == "thread" else 1
        yields = spins(config, owners.is_crowded(threads))
        steals = config.progress == "dynamic" or (config.progress == "ghosts" and self.ghost)
        for me, looks in (
            (self._me, yields),
            (self._helper, config.spins if config.thread_place == "shared" else -1),
        ):
            for field, value in (
                (ME.steals, int(steals)),
                (ME.order, int(config.order == "shm-first")),
                (ME.filter, int(config.filter)),
                (ME.spins, looks),
                (ME.dice, (config.seed << 20) + 7919 * (self.rank + 1)),
            ):
                self._put(me, field, value)
            me.put_real(me.address + ME.gap, 1e-6 * config.poll_gap_us)
            me.put_real(me.address + ME.next, 0.0)
        self._thread_place = place
        self._start_thread(place)
        self.comm.Barrier()

    def _start_thread(self, place: tuple[set[int], int] | None) -> None:
        """Start the progress thread, if the configuration has one."""
        if self.config.progress != "thread":
            return
        self._put(self._helper, ME.stop, 0)

        def run() -> None:
            if place is not None:
                os.sched_setaffinity(0, {place[1]})
            self._serve(self._helper.address)

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        if place is not None:
            os.sched_setaffinity(0, place[0])
        # Its memory must outlive it.
        atexit.register(self._end_thread)

    def _end_thread(self) -> None:
        if self._thread is not None:
            self._put(self._helper, ME.stop, 1)
            self._thread.join()
            self._thread = None
            os.sched_setaffinity(0, self._owners.mask)
            atexit.unregister(self._end_thread)

    def close(self) -> None:
        """End, all ranks together; arrays stay valid."""
        self.flush()
        self.barrier()
        self._end_thread()
        self._owners.close()
