"""The timed part of a kernel's rank as steps that MATE runs without Python.

The flat form of a kernel calls its compiled parts and MPI in turn. On MATE each rank first writes
this order down: calls that :meth:`runner.runtimes.core.kernels.Kernels.bind` has made, and
exchanges of messages. A step is a number of calls, then the start of some messages; the next step
begins when these are complete. The steps are those that are not timed, a head, a cycle that is
repeated, and a tail.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.runtimes import mate
from runner.runtimes.core.kernels import load, machine_words, scalars

KERNELS = "runner.programs.nas.common.step_kernels"
WORDS = 7
"""Words of a call in the table; the same number as in the kernels."""
AXES = 4
LEAST_PIECE = 4096
"""Bytes of the smallest piece into which a message is cut."""

Array = NDArray[Any]
Call = Callable[[], None]


@dataclass(frozen=True)
class Message:
    """A message to or from a rank.

    ``extents`` None: the whole of the array, which has no gaps. Otherwise one row for each piece:
    first byte and number of bytes, which calls before the exchange have set.
    """

    rank: int
    array: Array
    tag: int = 0
    extents: NDArray[np.int64] | None = None


class _Side:
    """The messages of all steps in one direction."""

    def __init__(self) -> None:
        self.first = [0]
        """Number of the first message of each step, and of all messages."""
        self.ranks: list[int] = []
        self.tags: list[int] = []
        self.memories: list[int] = []
        """Numbers of the arrays."""
        self.extents: list[tuple[int, int]] = []

    def end_step(self) -> None:
        self.first.append(len(self.ranks))

    @functools.cached_property
    def table(self) -> NDArray[np.int64]:
        """First byte and number of bytes of each message, once all are known."""
        return np.array(self.extents, dtype=np.int64).reshape(-1, 2)


class Steps:
    """The steps of one rank, in the order in which they are written down.

    ``split``: pieces in which a message is sent, if they are long enough.
    """

    def __init__(self, split: int = 1) -> None:
        self._split = split
        self._calls: list[list[int]] = []
        self._kept: list[object] = []
        """What the addresses of the calls belong to."""
        self._first_call = [0]
        self._sends, self._receives = _Side(), _Side()
        self._memories: dict[int, int] = {}
        # Never empty, so that the state has the same type with and without messages.
        self._arrays: list[Array] = [np.zeros(1, np.uint8)]
        self._deferred: list[tuple[int, _Side, int, NDArray[np.int64]]] = []
        """Calls that copy extents into the table: call, side, first message, the extents."""
        self._kernels = load(KERNELS)
        self.untimed, self.head, self.cycle, self.times = 0, 0, 0, 0

    def call(self, call: Call) -> None:
        """Make a call that ``Kernels.bind`` has returned."""
        self._kept.append(call)
        self._append(machine_words(call))

    def _append(self, words: list[int]) -> None:
        self._calls.append([*words, *[0] * (WORDS - len(words))])

    def clear(self, field: Array) -> None:
        """Set an array of doubles without gaps to zero."""
        self.call(self._kernels.bind("clear", field, scalars([field.size])))

    def add(self, total: Array, summand: Array) -> None:
        """Add an array of doubles to another; both without gaps."""
        state = scalars([total.size])
        self._kept.append((total, summand, state))
        self._append([self._kernels.address("add"), *map(_address, (total, summand, state))])

    def copy(self, source: Array, target: Array) -> None:
        """Copy an array of doubles or complex numbers to another of the same shape, with gaps."""
        self._append(self._copy(source, target))

    def _copy(self, source: Array, target: Array) -> list[int]:
        state = scalars(_geometry(source, target))
        self._kept.append((source, target, state))
        return [self._kernels.address("copy"), *map(_address, (source, target, state))]

    def exchange(self, sends: Sequence[Message], receives: Sequence[Message]) -> None:
        """End the step with these messages; with neither, nothing happens."""
        if sends or receives:
            self._add(self._sends, sends)
            self._add(self._receives, receives)
            self._end_step()

    def _add(self, side: _Side, messages: Sequence[Message]) -> None:
        for message in messages:
            base, memory = self._memory(message.array)
            if message.extents is None:
                length = message.array.nbytes
                count = max(1, min(self._split, length // LEAST_PIECE))
                ends = [8 * (length * n // (8 * count)) for n in range(count)]
                pieces = [(base + a, b - a) for a, b in pairwise([*ends, length])]
            else:
                assert base == 0, "extents count from the beginning of an array"
                pieces = [(0, 0)] * len(message.extents)
                self._deferred.append((len(self._calls), side, len(side.ranks), message.extents))
                self._append([])
            for piece in pieces:
                side.ranks.append(message.rank)
                side.tags.append(message.tag)
                side.memories.append(memory)
                side.extents.append(piece)

    def _memory(self, array: Array) -> tuple[int, int]:
        """The first byte of an array in the memory that it is a part of; the memory's number."""
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        number = self._memories.setdefault(id(owner), len(self._arrays))
        if number == len(self._arrays):
            self._arrays.append(owner.reshape(-1).view(np.uint8))
        assert array.flags.c_contiguous, "a message without gaps"
        return _address(array) - _address(owner), number

    def _end_step(self) -> None:
        self._first_call.append(len(self._calls))
        self._sends.end_step()
        self._receives.end_step()

    def start_clock(self) -> None:
        """The steps so far complete the start values; they are not timed."""
        self._close()
        self.untimed = len(self._first_call) - 1

    @contextmanager
    def repeated(self, times: int) -> Iterator[None]:
        """The steps of the block are the cycle."""
        self._close()
        self.head = len(self._first_call) - 1
        yield
        self._close()
        self.cycle, self.times = len(self._first_call) - 1 - self.head, times

    def _close(self) -> None:
        """End a step that has calls and no messages."""
        if self._first_call[-1] < len(self._calls):
            self._end_step()

    def finish(self) -> Program:
        """The steps as the state that a graph works on."""
        self._close()
        for call, side, first, extents in self._deferred:
            table = side.table[first : first + len(extents)]
            words = self._copy(extents.view(np.float64), table.view(np.float64))
            self._calls[call][:] = [*words, *[0] * (WORDS - len(words))]
        return Program(
            self,
            np.array(self._calls, dtype=np.int64),
            self._first_call,
            self._sends,
            self._receives,
            self._arrays,
        )


class Program:
    """The steps of a rank; the public attributes are for the compiled region."""

    ctx: mate.Context

    def __init__(
        self,
        steps: Steps,
        calls: NDArray[np.int64],
        first_call: Sequence[int],
        sends: _Side,
        receives: _Side,
        memories: list[Array],
    ) -> None:
        self._steps = steps  # what the addresses belong to
        address = load(KERNELS).address("perform")
        self.perform = mate.CFunction(address, "void(const int64*, int64, int64)")
        self.head, self.cycle, self.times = steps.head, steps.cycle, steps.times
        self._untimed = steps.untimed
        self.calls, self.first_call = calls.reshape(-1), _integers(first_call)
        self.memories = memories
        self.first_send, self.first_receive = _integers(sends.first), _integers(receives.first)
        self.targets, self.sources = _integers(sends.ranks), _integers(receives.ranks)
        self.send_tags, self.receive_tags = _integers(sends.tags), _integers(receives.tags)
        self.send_memories = _integers(sends.memories)
        self.receive_memories = _integers(receives.memories)
        self.send_extents = sends.table.reshape(-1)
        self.receive_extents = receives.table.reshape(-1)
        self.kernels_s = np.zeros(3)
        """Seconds of the calls; wall and CPU seconds of the sampled ones."""

    @property
    def untimed(self) -> range:
        """The steps before the timed part."""
        return range(self._untimed)

    @property
    def warm_up(self) -> range:
        """The steps up to the end of the first cycle."""
        return range(self.head + self.cycle)

    @property
    def timed(self) -> range:
        """All steps of the timed part."""
        return range(self._untimed, len(self.first_call) - 1 + self.cycle * (self.times - 1))


def _integers(values: Sequence[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _geometry(source: Array, target: Array) -> list[int]:
    """Points and distances of four axes for the kernel ``copy``; axes without gaps become one."""
    assert source.shape == target.shape, "arrays of one shape"
    words = source.itemsize // 8
    # From the fastest axis: points, distance in the source, distance in the target (in words).
    axes = [(words, 1, 1)]
    for count, a, b in zip(source.shape, source.strides, target.strides, strict=True):
        axes.insert(1, (count, a // 8, b // 8))
    merged = [axes[0]]
    for count, a, b in axes[1:]:
        points, x, y = merged[-1]
        if count == 1:
            continue
        if points == 1:
            merged[-1] = (count, a, b)
        elif (a, b) == (points * x, points * y):
            merged[-1] = (points * count, x, y)
        else:
            merged.append((count, a, b))
    assert len(merged) <= AXES, "at most four axes"
    merged += [(1, 0, 0)] * (AXES - len(merged))
    return [axis[part] for part in range(3) for axis in reversed(merged)]
