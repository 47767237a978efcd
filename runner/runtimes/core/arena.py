"""Memory that the processes of a node share, at the same addresses in all of them.

Every process allocates in its own part without coordination; all can read and write all
allocations. The memory has no name (``memfd``), so none is left behind however the processes end.
It is freed when all processes have dropped their last array in it.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import threading
import weakref
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from runner.errors import RunnerError
from runner.runtimes.core.words import LINE, PAGE

_READ_WRITE = 1 | 2
_SHARED, _PRIVATE, _FIXED, _NOT_OVER = 1, 2, 0x10, 0x100000
_REMOVE, _HUGE = 9, 14
"""Advice: give the pages back, and use large ones."""
_PLACES = (*(n << 44 for n in range(1, 5)), 1 << 38, 1 << 37)
"""Addresses that are tried in turn; programs, libraries and stacks lie elsewhere on Linux."""
_LARGEST = 1 << 43
"""Maximum bytes of addresses for a node."""
_STEP = 1 << 18
"""Bytes taken from the system at once."""
Shape = int | tuple[int, ...]
Number = TypeVar("Number", bound=np.generic)


class ArenaError(RunnerError):
    """The node's processes cannot share memory, or none is left."""


@functools.cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    size, number, address = ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p
    libc.mmap.restype = address
    libc.mmap.argtypes = [address, size, number, number, number, ctypes.c_long]
    libc.munmap.argtypes = [address, size]
    libc.madvise.argtypes = [address, size, number]
    return libc


def _map(address: int, size: int, flags: int, file: int, offset: int) -> str:
    """Map a part of a file at this address; returns the error as text, or ""."""
    libc = _libc()
    found = libc.mmap(address, size, _READ_WRITE, flags, file, offset)
    if found == address:
        return ""
    if found in (None, ctypes.c_void_p(-1).value):
        return os.strerror(ctypes.get_errno())
    libc.munmap(found, size)
    return os.strerror(errno.EEXIST)


class _Mapping:
    """The memory in this process; it is unmapped when nothing refers to it any more."""

    def __init__(self, address: int, size: int, file: int) -> None:
        self.address, self.size, self.file = address, size, file
        weakref.finalize(self, _release, address, size, file).atexit = False


def _release(address: int, size: int, file: int) -> None:
    _libc().munmap(address, size)
    os.close(file)


class Arena:
    """The memory of a node's processes; created by all processes of ``comm``.

    Raises :class:`ArenaError` in all of them if one cannot participate.
    """

    def __init__(self, comm: Any) -> None:
        from mpi4py import MPI

        self.comm = comm
        self.node = comm.Split_type(MPI.COMM_TYPE_SHARED)
        """The processes of this node."""
        self.count: int = self.node.size
        least = min(self.node.allgather(_memory()))
        part = min(least, _LARGEST // self.count) // PAGE * PAGE
        file, problem = self._opened(part * self.count)
        self._agree(problem)
        self._mapping = self._mapped(file, part * self.count)
        self._lock = threading.Lock()
        self._begin = self._mapping.address + self.node.rank * part
        self._next = self._taken = self._begin
        self._end = self._passing = self._begin + part

    def _opened(self, size: int) -> tuple[int, str]:
        """The file of the memory, and the error as text."""
        file, problem = -1, ""
        if not self.node.rank:
            try:
                file = os.memfd_create("arena", os.MFD_CLOEXEC)
                os.ftruncate(file, size)
            except OSError as error:
                problem = f"it cannot be made: {error.strerror}"
        place = self.node.bcast((os.getpid(), file, problem))
        if self.node.rank and not place[2]:
            try:
                file = os.open(f"/proc/{place[0]}/fd/{place[1]}", os.O_RDWR | os.O_CLOEXEC)
                if os.fstat(file).st_size != size:
                    problem = "the processes do not see each other"
            except OSError as error:
                problem = f"it cannot be opened by another process: {error.strerror}"
        return file, problem

    def _mapped(self, file: int, size: int) -> _Mapping:
        """The memory at the first address that is free in all processes of the node."""
        problem = ""
        for address in _PLACES:
            problem = _map(address, size, _SHARED | _NOT_OVER, file, 0)
            problems = self.node.allgather(problem)
            if not any(problems):
                self._agree("")
                _libc().madvise(address, size, _HUGE)
                return _Mapping(address, size, file)
            if not problem:
                _libc().munmap(address, size)
            problem = next(filter(None, problems))
        os.close(file)
        self._agree(f"no address is free for {size >> 30} GiB in all processes: {problem}")
        raise AssertionError

    def _agree(self, problem: str) -> None:
        """Raise in all processes if one of them has a problem."""
        found = next(filter(None, self.comm.allgather(problem)), "")
        if found:
            self.node.Free()
            raise ArenaError(
                f"the processes of a node cannot share memory: {found}; use --steal process",
                code="native.shared_memory",
            )

    def close(self) -> None:
        """Free the node's communicator; collective. Arrays stay valid."""
        self.node.Free()

    def zeros(self, shape: Shape, dtype: Any = np.float64) -> NDArray[Any]:
        """A new array of zeros in this process's part, at the beginning of a cache line.

        Raises :class:`ArenaError` if the memory is full.
        """
        kind = np.dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        size = max(LINE, -(-count * kind.itemsize // LINE) * LINE)
        with self._lock:
            at = self._next
            if at + size > self._passing:
                raise self._full(size)
            self._take(at + size)
            self._next = at + size
        found: NDArray[Any] = self._bytes(at, count * kind.itemsize).view(kind)
        return found.reshape(shape)

    def copy(self, array: NDArray[Number]) -> NDArray[Number]:
        """A copy of the array in the arena, in C order."""
        made = self.zeros(array.shape, array.dtype)
        made[...] = array
        return made

    def passing(self, size: int) -> NDArray[np.uint8]:
        """Zeroed bytes at the beginning of a page; they last until :meth:`clear`."""
        with self._lock:
            at = (self._passing - size) // PAGE * PAGE
            if at < self._next:
                raise self._full(size)
            self._passing = at
        return self._bytes(at, size)

    def clear(self) -> None:
        """Free everything returned by :meth:`passing`; nobody uses it any more."""
        with self._lock:
            if self._passing < self._end:
                _libc().madvise(self._passing, self._end - self._passing, _REMOVE)
            self._passing = self._end

    def view(self, address: int, shape: Shape, dtype: Any = np.float64) -> NDArray[Any]:
        """The array that a process of the node has at this address; all may write it.

        Raises :class:`ArenaError` for an address outside of the memory.
        """
        kind = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        mapping = self._mapping
        if not mapping.address <= address <= address + size <= mapping.address + mapping.size:
            raise ArenaError(
                f"{size} bytes at address {address:#x} are not in the shared memory",
                code="native.shared_memory",
            )
        found: NDArray[Any] = self._bytes(address, size).view(kind)
        return found.reshape(shape)

    def holds(self, array: NDArray[Any]) -> bool:
        """True if all elements of the array lie in the memory of the node."""
        first, last = np.lib.array_utils.byte_bounds(array)
        mapping = self._mapping
        return mapping.address <= first and last <= mapping.address + mapping.size

    def own_page(self, address: int) -> None:
        """Give this process a private page, a copy, at the address of a shared one."""
        self._replace(address, _PRIVATE)

    def shared_page(self, address: int) -> None:
        """Undo :meth:`own_page`."""
        self._replace(address, _SHARED)

    def _replace(self, address: int, kind: int) -> None:
        mapping = self._mapping
        offset = address - mapping.address
        if problem := _map(address, PAGE, kind | _FIXED, mapping.file, offset):
            raise ArenaError(
                f"a page of shared memory cannot be replaced: {problem}",
                code="native.shared_memory",
            )

    def _take(self, end: int) -> None:
        """Request the pages up to this address from the system, which reports if it has them."""
        if end <= self._taken:
            return
        taken = min(-(-end // _STEP) * _STEP, self._passing)
        mapping = self._mapping
        try:
            os.posix_fallocate(mapping.file, self._taken - mapping.address, taken - self._taken)
        except OSError as error:
            raise self._full(end - self._next, f": {error.strerror}") from None
        self._taken = taken

    def _full(self, size: int, why: str = "") -> ArenaError:
        used = self._next - self._begin >> 20
        return ArenaError(
            f"the node has no shared memory for {size} more bytes, after {used} MiB of this "
            f"process{why}",
            code="native.shared_memory",
        )

    def _bytes(self, address: int, size: int) -> NDArray[np.uint8]:
        """These bytes as an array, which keeps the mapping alive."""
        view: Any = (ctypes.c_uint8 * size).from_address(address)
        view.mapping = self._mapping
        return np.frombuffer(view, np.uint8)


def _memory() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
