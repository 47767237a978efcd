"""The core of one process: its memory, its functions, and the table of MPI's addresses.

Python code owns the memory and reads it; compiled code (:mod:`runner.runtimes.core.exports`)
changes it while workers run. See :mod:`runner.runtimes.core.words` for the records.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runner.errors import RunnerError
from runner.runtimes.core import kernels
from runner.runtimes.core.arena import Arena
from runner.runtimes.core.counter import Counter, steady
from runner.runtimes.core.memory import Memory, Part, part_size
from runner.runtimes.core.mpi_table import MessageTable
from runner.runtimes.core.words import (
    COMPUTE,
    CORE,
    EDGE,
    EVENT,
    KINDS,
    LOOKS,
    PAGE,
    POSTED,
    QUEUED,
    RANK,
    WORKER,
)

_FUTEX = {"x86_64": 202, "aarch64": 98}
"""Number of the system call by architecture; the compiled core runs on these."""
_PRIVATE_FUTEX = 128
"""Flag of a futex used by only one process."""
_ENTRIES = 256
"""Regions that guests may run, over all graphs and types of states."""
_ABSENT = ("call", "body", "realloc", "isend", "irecv", "testsome", "locations", "kinds", "others")
"""Words of a core without a meaning in other processes: guests do not use them."""
_CALLED = (
    *("syscall", "yield_", "clock_gettime", "swapcontext"),
    *("start", "count_as", "seconds", "cpu_seconds", "wait", "transfer", "post", "take"),
)
"""Words of a core that are addresses of functions, which differ between processes."""
_REQUESTS = 1024
"""Initial capacity for messages under way; it grows."""
_EDGES = 256
"""Edges allocated at once."""
LOG_EVENTS = 1 << 20
"""Capacity of an event log."""
Callback = Callable[[int, int, int], int]


def supported() -> bool:
    """True if the compiled core runs on this processor."""
    return platform.machine() in _FUTEX


@dataclass(frozen=True, kw_only=True)
class Options:
    """The behaviour of workers; times in seconds."""

    spin_s: float
    sleep_s: float
    crowded: bool
    stealing: bool
    remote: bool
    """True if the job has processes on other nodes."""
    seed: int | None
    log: bool
    log_ends: bool = False
    """True if recording ends when the log is full, as for a time line; else that is an error."""
    ordered: bool = False
    """True if ready ranks wait in order of priority."""
    service: bool = False
    """True if one more thread does nothing but poll messages."""
    patience: int = 0
    """Number of looks for its messages before a region leaves its stack."""
    funneled: bool = False
    """True if the first worker makes all MPI calls, including those of the others."""


@functools.cache
def functions() -> kernels.Kernels:
    """The compiled code of the core. Raises :class:`RunnerError` if it cannot run here."""
    if not supported():
        raise RunnerError(
            f"the compiled core does not run on {platform.machine()}, only on "
            f"{' and '.join(_FUTEX)}: use --core python",
            code="native.missing",
        )
    return kernels.load("runner.runtimes.core.exports")


@functools.cache
def counter() -> Counter:
    """The clock of compiled code in this process."""
    return Counter.measured(functions().function("count"))


class Core:
    """The ranks and workers of a process.

    With an arena, its records lie there, and workers of other processes on the node may visit as
    guests once both have called :meth:`meet`.

    ``call(kind, a, b)`` and ``body(worker, node, iteration)`` are Python functions that compiled
    code calls on a worker's thread; they must not raise.
    """

    def __init__(
        self,
        ranks: Sequence[int],
        workers: int,
        call: Callback,
        body: Callback,
        options: Options,
        arena: Arena | None = None,
    ) -> None:
        code = functions()
        self._code, self._arena = code, arena
        if arena is not None:
            arena.clear()
        guests = arena.count * workers if arena is not None else 0
        room = max(1, len(ranks))
        capacity = 1 << room.bit_length()
        server = int(options.service)
        size = CORE.size + (workers + guests + server) * WORKER.size + len(ranks) * RANK.size
        self.memory = Memory(size, arena)
        self.address = self.memory.address
        self._words = self.memory.words
        self.workers = [self.address + CORE.size + n * WORKER.size for n in range(workers)]
        self.guests = [self.workers[-1] + (n + 1) * WORKER.size for n in range(guests)]
        self.server = self.workers[-1] + (guests + 1) * WORKER.size
        """The record of the thread that polls messages, if any."""
        first = self.address + CORE.size + (workers + guests + server) * WORKER.size
        self.ranks = [first + n * RANK.size for n in range(len(ranks))]
        self.queues = [
            (w + WORKER.head - self.address >> 3, w + WORKER.tail - self.address >> 3)
            for w in self.workers
        ]
        """Indices into ``memory.words`` of the beginning and end of each worker's queue."""
        self._rings = [Memory(8 * capacity, arena) for _ in range(workers)]
        self._capacity = capacity
        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)
        self._callbacks = prototype(call), prototype(body)
        self._edges: list[Memory] = []
        self._edges_left = 0
        self._tables: list[Any] = []
        self._entries: Memory | None = None
        self._hosts: list[int] = []
        """Cores of other processes whose first page is private to this process."""
        self._libc = ctypes.CDLL(None)
        self._log: Memory | None = None
        self._traffic: Memory | None = None
        self._bind()
        self._fill(ranks, options)

    def _bind(self) -> None:
        """The compiled functions, with this core's address as first argument."""

        def bound(name: str, brief: bool = True) -> Callable[..., Any]:
            return functools.partial(self._code.function(name, brief), self.address)

        self.work = bound("work", brief=False)
        self.enter = bound("enter")
        self.wake = bound("wake_rank")
        self.complete = bound("complete")
        self.note = bound("note_requests")
        self.switch = bound("switch_kind")
        # It copies the message.
        self.post = bound("post", brief=False)
        self.stop = bound("stop_all")
        self.call_poller = bound("call_poller")
        self.lock_mpi = bound("lock_mpi", brief=False)
        self.unlock_mpi = bound("unlock_mpi")
        self._link = bound("link")
        self._close = bound("close_core", brief=False)
        self.over: Callable[[int], int] = self._code.function("over")
        self.called = tuple(
            self.address + place
            for place in (
                *(CORE.start, CORE.count_as, CORE.seconds, CORE.cpu_seconds),
                *(CORE.wait, CORE.transfer, CORE.post, CORE.take),
            )
        )
        """The addresses of functions for compiled regions: start a message, count their time as
        another kind, read the clock, read their worker's CPU time, wait for all messages, start one
        and wait for it, start one for a later execution, and wait for those."""
        self.address_of = self._code.address

    def _fill(self, ranks: Sequence[int], options: Options) -> None:
        call, body = (ctypes.cast(c, ctypes.c_void_p).value or 0 for c in self._callbacks)
        clock = counter()
        self._set(
            workers=len(self.workers),
            ranks=len(ranks),
            worker0=self.workers[0],
            rank0=self.ranks[0] if self.ranks else 0,
            call=call,
            body=body,
            syscall=self._function("syscall"),
            futex=_FUTEX[platform.machine()],
            yield_=self._function("sched_yield"),
            clock_gettime=self._function("clock_gettime"),
            realloc=self._function("realloc"),
            start=self._code.address("start_message"),
            count_as=self._code.address("count_as"),
            seconds=self._code.address("seconds"),
            cpu_seconds=self._code.address("cpu_seconds"),
            wait=self._code.address("wait_messages"),
            transfer=self._code.address("transfer_message"),
            post=self._code.address("post_message"),
            take=self._code.address("take_messages"),
            swapcontext=self._function("swapcontext"),
            patience=options.patience,
            funnel=self.workers[0] if options.funneled else 0,
            private=_PRIVATE_FUTEX if self._arena is None else 0,
            tick0=clock.tick0,
            crowded=int(options.crowded),
            stealing=int(options.stealing),
            random=int(options.seed is not None),
            looks=LOOKS if options.remote else 1,
            ordered=int(options.ordered),
            service=self.server if options.service else 0,
            live=len(ranks),
        )
        for name, value in (
            ("second0", clock.second0),
            ("tick_s", clock.tick_s),
            ("spin_s", options.spin_s),
            ("sleep_s", options.sleep_s),
        ):
            self.memory.put_real(self.address + getattr(CORE, name), value)
        if options.log:
            self._log = Memory(LOG_EVENTS * EVENT.size, self._arena)
            self._set(log=self._log.address, log_space=LOG_EVENTS, log_ends=int(options.log_ends))
        dice = random.Random(options.seed or 0)
        for number, (worker, ring) in enumerate(zip(self.workers, self._rings, strict=True)):
            put = self.memory.put
            put(worker + WORKER.core, self.address)
            put(worker + WORKER.number, number)
            put(worker + WORKER.dice, dice.getrandbits(62) | 1)
            put(worker + WORKER.ring, ring.address)
            put(worker + WORKER.mask, self._capacity - 1)
        if options.service:
            put(self.server + WORKER.core, self.address)
            put(self.server + WORKER.number, len(self.workers) + len(self.guests))
        for number, guest in enumerate(self.guests):
            put(guest + WORKER.core, self.address)
            put(guest + WORKER.number, len(self.workers) + number)
            put(guest + WORKER.dice, dice.getrandbits(62) | 1)
        for local, rank in enumerate(self.ranks):
            put = self.memory.put
            put(rank + RANK.core, self.address)
            put(rank + RANK.local, local)
            put(rank + RANK.number, ranks[local])
            put(rank + RANK.home, local * len(self.workers) // len(ranks))
        for local in range(len(ranks)):
            self._queue_at_start(local)

    def _queue_at_start(self, local: int) -> None:
        get, put, rank = self.memory.get, self.memory.put, self.ranks[local]
        number = get(rank + RANK.home)
        worker, ring = self.workers[number], self._rings[number]
        tail = get(worker + WORKER.tail)
        ring.put(ring.address + 8 * (tail & (self._capacity - 1)), rank)
        put(worker + WORKER.tail, tail + 1)
        put(rank + RANK.state, QUEUED)

    def _function(self, name: str) -> int:
        return ctypes.cast(getattr(self._libc, name), ctypes.c_void_p).value or 0

    def _set(self, **values: int) -> None:
        for name, value in values.items():
            self.memory.put(self.address + getattr(CORE, name), value)

    def word(self, field: int) -> int:
        """A word of the core's own record."""
        return self._words[field >> 3]

    def set_word(self, field: int, value: int) -> None:
        self._words[field >> 3] = value

    def set_home(self, local: int, worker: int) -> None:
        """From now on, queue a rank for this worker."""
        self.memory.put(self.ranks[local] + RANK.home, worker)

    def graph(self, order: Sequence[int], urgent: Sequence[bool], first: int) -> list[Part]:
        """One part of a graph for each local rank.

        ``order``: the regions by priority; the first ready one runs. ``urgent``: True for each
        region that lets its rank overtake others. Regions are numbered from ``first`` on, part by
        part.
        """
        count = len(order)
        size = part_size(count)
        memory = Memory(len(self.ranks) * size, self._arena)
        parts = []
        for local, rank in enumerate(self.ranks):
            part = Part(memory, memory.address + local * size, order)
            part.fill(rank, first + local * count, urgent)
            parts.append(part)
        return parts

    def part(self, local: int, count: int) -> Part:
        """A part of ``count`` compiled regions of one rank; the first ready one runs."""
        memory = Memory(part_size(count), self._arena)
        part = Part(memory, memory.address, range(count))
        part.fill(self.ranks[local], 0, [False] * count)
        return part

    def link(self, target: int, source: int, lead: int) -> int:
        """Make the region at one address depend on the region at another; returns the edge."""
        if not self._edges or self._edges_left == 0:
            self._edges.append(Memory(_EDGES * EDGE.size, self._arena))
            self._edges_left = _EDGES
        self._edges_left -= 1
        edge = self._edges[-1].address + self._edges_left * EDGE.size
        self._link(edge, target, source, lead)
        return edge

    def events(self) -> Iterator[tuple[int, float, int, int, int, int, int, float]]:
        """The log: kind, time, rank, node, execution, worker, posted, and the end of a lapse."""
        if self._log is None:
            return
        count = min(self.word(CORE.log_count), LOG_EVENTS)
        for number in range(count):
            at = number * EVENT.size >> 3
            words, reals = self._log.words, self._log.reals
            kind, _, rank, node, execution, worker, posted = words[at : at + 7]
            begin, end = reals[at + 1], reals[at + (EVENT.execution >> 3)]
            yield kind, begin, rank, node, execution, worker, posted, end

    def is_cut(self) -> bool:
        """True if the log was full before the end."""
        return self._log is not None and self.word(CORE.log_count) > LOG_EVENTS

    def traffic(self) -> Iterator[tuple[int, int, int, int]]:
        """The messages that compiled code sent, if there is a log.

        Local rank of the sender, global rank of the receiver, messages, bytes.
        """
        if self._traffic is None:
            return
        total = self.word(CORE.total)
        for number in range(len(self.ranks) * total):
            messages, sent = self._traffic.words[2 * number : 2 * number + 2]
            if messages:
                yield *divmod(number, total), messages, sent

    def messages(self, table: MessageTable, locations: Sequence[tuple[int, int]]) -> None:
        """Let compiled code start messages.

        ``locations``: process and local number of each global rank.
        """
        where = np.array([p << 32 | local for p, local in locations], np.int64)
        kinds = np.zeros((len(KINDS), 2), np.int64)
        for number, (handle, size) in enumerate(table.kinds):
            kinds[number] = handle, size
        self._tables += [where, kinds]
        if self._log is not None:
            self._traffic = Memory(16 * len(self.ranks) * len(locations), self._arena)
            self._set(traffic=self._traffic.address)
        self._set(
            process=table.process,
            total=len(locations),
            locations=where.ctypes.data,
            kinds=kinds.ctypes.data,
            direct=int(table.direct),
            tag_bits=table.tag_bits,
            tag_top=table.tag_top,
            serial=int(table.serialized),
            isend=table.isend,
            irecv=table.irecv,
            testsome=table.testsome,
            communicator=table.communicator,
            handle_size=table.handle_size,
            status_size=table.status_size,
            undefined=table.undefined,
            space=_REQUESTS,
            incoming_space=_REQUESTS,
        )
        realloc = self._libc.realloc
        realloc.argtypes, realloc.restype = [ctypes.c_void_p, ctypes.c_size_t], ctypes.c_void_p
        for name, size in (
            ("requests", table.handle_size),
            ("owners", 8),
            ("infos", 8),
            ("indices", 4),
            ("statuses", table.status_size),
            ("done", 8),
            ("incoming", POSTED.size),
        ):
            place = realloc(None, max(1, size) * _REQUESTS)
            if not place:
                raise MemoryError
            self._set(**{name: place})

    def meet(self) -> None:
        """Let workers of this process and of others on its node be guests of each other.

        Collective over the node, after :meth:`messages` and before the workers start.
        """
        arena = self._arena
        assert arena is not None
        self._entries = Memory(16 * (_ENTRIES + 1))
        own = arena.node.rank
        self._set(
            place=own * len(self.workers),
            guest0=self.guests[0],
            entries=self._entries.address,
            open=1,
        )
        # The others have set all their words.
        cores: list[int] = arena.node.allgather(self.address)
        # Each process starts looking at another one.
        self._hosts = cores[own + 1 :] + cores[:own]
        for host in self._hosts:
            arena.own_page(host)
            words = (ctypes.c_int64 * (PAGE // 8)).from_address(host)
            for name in _ABSENT:
                words[getattr(CORE, name) >> 3] = 0
            for name in (*_CALLED, "entries"):
                words[getattr(CORE, name) >> 3] = self.word(getattr(CORE, name))
        others = Memory(8 * (1 + len(self._hosts)))
        for number, word in enumerate((len(self._hosts), *self._hosts)):
            others.words[number] = word
        self._tables.append(others)
        self._set(others=others.address)
        # No page is replaced while a guest may be working.
        arena.node.Barrier()

    def guest_s(self, guest: int) -> float:
        """Seconds that a guest has computed in this process, up to now."""
        get, real = self.memory.get, self.memory.get_real

        def words() -> tuple[bool, float, float]:
            computes = get(guest + WORKER.rank) != 0 and get(guest + WORKER.kind) == COMPUTE
            return computes, real(guest + WORKER.since), real(guest + WORKER.compute)

        at, (computes, since, spent) = steady(words, counter().now)
        return spent + max(0.0, at - since) if computes else spent

    def learn(self, number: int, entry: int) -> bool:
        """Register the code of a region that guests may run, for this process's own workers.

        Returns True if there was room. Only one thread at a time may call this.
        """
        assert self._entries is not None
        words = self._entries.words
        count = words[0]
        if number not in words[2 : 2 + 2 * count : 2].tolist():
            if count == _ENTRIES:
                return False
            words[2 + 2 * count], words[3 + 2 * count] = number, entry
            words[0] = count + 1
        return True

    def under_way(self) -> list[tuple[int, int, bool]]:
        """Peer, tag and direction (True: receive) of compiled messages under way in MPI."""
        count, infos = self.word(CORE.count), self.word(CORE.infos)
        found = [ctypes.c_int64.from_address(infos + 8 * n).value for n in range(count)]
        return [(x >> 32, (x & 0xFFFFFFFF) >> 1, bool(x & 1)) for x in found]

    def close(self) -> None:
        """Wait until guests are gone, and free the memory allocated by compiled code."""
        if self._arena is not None:
            self._close()
            for host in self._hosts:
                self._arena.shared_page(host)
            self._hosts.clear()
        free = self._libc.free
        free.argtypes, free.restype = [ctypes.c_void_p], None
        chunk = self.word(CORE.chunks)
        while chunk:
            following = ctypes.c_int64.from_address(chunk).value
            free(chunk)
            chunk = following
        for name in ("requests", "owners", "infos", "indices", "statuses", "done", "incoming"):
            if address := self.word(getattr(CORE, name)):
                free(address)
                self._set(**{name: 0})
        self._set(chunks=0)
