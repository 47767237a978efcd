"""The programs: the operations of a batch, and the check of the data."""

from __future__ import annotations

from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.cab.options import Options
from runner.programs.apps.cab.product import Product
from runner.runtimes.core.kernels import load
from runner.runtimes.intranode import Cab, Request

Field = NDArray[Any]
Span = tuple[float, float]
"""Begin and end on the clock of the node."""
_NOBODY: Span = (float("inf"), 0.0)


class Program(Protocol):
    """One rank of a program; all ranks make it and run the same batches."""

    operations: int
    """Operations of a batch for each of its ``times``."""

    def batch(self, times: int, workers: int) -> Span:
        """Run a batch; returns the times when this rank started and ended its part."""
        ...

    def right(self) -> bool:
        """True if this rank's data are right."""
        ...


class PingPong:
    """Ranks 0 and 1 send each other an array, with gaps or without; each returns what it got."""

    operations = 2

    def __init__(self, cab: Cab, options: Options) -> None:
        self._cab, self._read = cab, options.read
        self._active = cab.rank < 2
        if not self._active:
            return
        is_strided = options.program == "strided"
        # Of three equal arrays one is the message that arrived and is sent on.
        self._mine, self._theirs = (_array(cab, options, is_strided) for _ in range(2))
        self._pattern = np.arange(self._mine.size, dtype=np.float64).reshape(self._mine.shape)
        other = 1 - cab.rank
        self._out = cab.send_init(self._mine if cab.rank == 0 else self._theirs, other, 3)
        self._in = cab.recv_init(self._theirs, other, 3)
        self._mine[...] = self._pattern
        self._good, self._mark = True, 0.0
        self._sum = 0.0

    def batch(self, times: int, workers: int) -> Span:
        if not self._active:
            return _NOBODY
        cab, first, corner = self._cab, self._cab.rank == 0, (0,) * self._mine.ndim
        begin = perf_counter()
        for _ in range(times):
            self._mark += 1.0
            if first:
                self._mine[corner] = self._mark
                self._move(self._out)
                cab.start(self._in)
                cab.wait(self._in)
                self._use(corner)
            else:
                cab.start(self._in)
                cab.wait(self._in)
                self._use(corner)
                self._move(self._out)
        return begin, perf_counter()

    def _move(self, request: Request) -> None:
        self._cab.start(request)
        self._cab.wait(request)

    def _use(self, corner: tuple[int, ...]) -> None:
        """Check that the message is the current one, and read it from its beginning."""
        self._good = self._good and self._theirs[corner] == self._mark
        if self._read:
            self._sum += float(self._theirs.sum())

    def right(self) -> bool:
        if not self._active:
            return True
        self._pattern[(0,) * self._pattern.ndim] = self._mark
        return bool(self._good and np.array_equal(self._theirs, self._pattern))


class Packs:
    """Ranks 0 and 1 pack a face in turn, and notify each other by a short message."""

    operations = 2

    def __init__(self, cab: Cab, options: Options) -> None:
        self._cab = cab
        self._active = cab.rank < 2
        if not self._active:
            return
        self._face = _array(cab, options, True)
        self._face[...] = np.arange(self._face.size, dtype=np.float64).reshape(self._face.shape)
        self._face += 1e6 * cab.rank
        self._buffer = cab.zeros(self._face.shape)
        token, answer = cab.zeros(1), cab.zeros(1)
        other = 1 - cab.rank
        self._pack = cab.copy_init(self._buffer, self._face)
        self._tell, self._hear = cab.send_init(token, other, 4), cab.recv_init(answer, other, 4)

    def batch(self, times: int, workers: int) -> Span:
        if not self._active:
            return _NOBODY
        cab = self._cab
        mine = (self._pack, self._tell, self._hear)
        order = mine if cab.rank == 0 else (self._hear, self._pack, self._tell)
        begin = perf_counter()
        for _ in range(times):
            for request in order:
                cab.start(request)
                cab.wait(request)
        return begin, perf_counter()

    def right(self) -> bool:
        if not self._active:
            return True
        good = np.array_equal(self._buffer, self._face)
        self._buffer[...] = 0.0
        return bool(good)


class Accumulate:
    """Rank 0 repeatedly adds to the memory of rank 1."""

    operations = 1

    def __init__(self, cab: Cab, options: Options) -> None:
        self._cab = cab
        count = options.size // 8
        target = cab.zeros(count)
        target[:] = cab.rank
        self._owner, self._own = min(1, cab.size - 1), target
        self._target = cab.arrays_of_all(target)[self._owner]
        self._source = cab.zeros(count)
        self._source[:] = np.arange(count) % 1000
        self._add = cab.accumulate_init(self._target, self._source, self._owner)
        self._times = 0

    def batch(self, times: int, workers: int) -> Span:
        self._times += times
        cab = self._cab
        if cab.rank != 0:
            return _NOBODY
        begin = perf_counter()
        for _ in range(times):
            cab.start(self._add)
            cab.wait(self._add)
        return begin, perf_counter()

    def right(self) -> bool:
        if self._cab.rank != self._owner:
            return bool((self._own == self._cab.rank).all())
        reference = self._owner + self._times * self._source
        return bool(np.array_equal(self._own, reference))


class Saturation:
    """Some ranks copy at once, each its own buffer or its part of a shared one."""

    operations = 1

    def __init__(self, cab: Cab, options: Options) -> None:
        self._cab, self._share, self._chunk = cab, options.share, options.probe_chunk
        self._size = options.size
        self._copy = load("runner.runtimes.intranode.progress").function("copy_over")
        self._source, self._target = (cab.zeros(self._size, np.uint8) for _ in range(2))
        self._source[:] = np.arange(self._size) % 251 + cab.rank % 4
        self._target[:] = 0
        self._places = self._source.ctypes.data, self._target.ctypes.data
        if self._share:
            self._places = cab.comm.bcast(self._places)

    def batch(self, times: int, workers: int) -> Span:
        cab = self._cab
        if cab.rank >= workers:
            return _NOBODY
        first, last = 0, self._size
        if self._share:
            parts = -(-self._size // 64)
            first, last = (64 * (parts * (cab.rank + n) // workers) for n in (0, 1))
            last = min(last, self._size)
        source, target = (place + first for place in self._places)
        begin = perf_counter()
        self._copy(target, source, last - first, self._chunk, times)
        return begin, perf_counter()

    def right(self) -> bool:
        if self._share and self._cab.rank:
            return True
        good = bool(np.array_equal(self._source, self._target)) or not self._target.any()
        self._target[:] = 0
        return good


def _array(cab: Cab, options: Options, gaps: bool) -> Field:
    """An array of ``size`` bytes; with gaps it is a face [:, 0, :] of a larger one."""
    if not gaps:
        return cab.zeros(options.size // 8)
    width = options.size // 8 // options.rows
    face: Field = cab.zeros((options.rows, options.spread, width))[:, 0, :]
    return face


def make(cab: Cab, options: Options) -> Program:
    """This rank of the program; raises :class:`runner.errors.RunnerError`."""
    if options.program == "product":
        return Product(cab, options)
    if options.program == "pack":
        return Packs(cab, options)
    if options.program == "accumulate":
        return Accumulate(cab, options)
    if options.program == "saturation":
        return Saturation(cab, options)
    return PingPong(cab, options)
