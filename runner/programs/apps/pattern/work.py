"""The parts of every pattern: a fixed amount of work, and checkable messages."""

from __future__ import annotations

from itertools import repeat
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.pattern.options import WORD, Options

CELLS = 256
"""Doubles of the kernel's array: 2 KiB. Two virtual processors may sometimes share a core and its
first cache: with 16 KiB the kernel then took 1.8 times as long, with 2 KiB 1.1 times."""
_PAGE = 4096


class Pattern(Protocol):
    """A communication pattern on one rank."""

    def run(self, first: int, end: int) -> None:
        """Do the steps ``first`` to ``end`` (excluded). Steps are done once each, in order."""

    def wrong(self) -> str:
        """The faults of the messages of all steps; empty if there are none."""


class Work:
    """Computing of a fixed size: every call of the kernel adds one array to another."""

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = 0.0
        # Both arrays fill one page: their start must not depend on the environment.
        memory = np.zeros(2 * _PAGE, np.uint8)
        first = -memory.ctypes.data % _PAGE
        both = memory[first : first + 2 * CELLS * 8].view(np.float64)
        self._step, self._sum = both[:CELLS], both[CELLS:]
        self._step[:] = np.arange(1.0, CELLS + 1)

    def do(self, calls: int) -> None:
        """Call the kernel; every call is the same work."""
        begin = perf_counter()
        add, step, total = np.add, self._step, self._sum
        for _ in repeat(None, calls):
            add(total, step, total)
        self.calls += calls
        self.seconds += perf_counter() - begin

    def wrong(self) -> str:
        """The faults of the sums; every sum is exact up to 2**53."""
        right = np.array_equal(self._sum, self._step * self.calls)
        return "" if right else f"the sums of {self.calls} calls of the kernel"


def share(options: Options, rank: int, ranks: int) -> int:
    """Calls of the kernel in a step of this rank, from 1 - imbalance to 1 + imbalance."""
    factor = 1 + options.imbalance * (2 * rank / (ranks - 1) - 1)
    return round(options.work * factor)


class Message:
    """A buffer of words. The first one identifies sender and step; the others are fixed.

    ``sender`` is a number that is unique among all messages of a step.
    """

    def __init__(self, size: int, sender: int, *, is_outgoing: bool) -> None:
        self.words: NDArray[np.int64] = np.zeros(size // WORD, np.int64)
        self._reference = np.arange(len(self.words)) * 1009 + sender
        if is_outgoing:
            self.words[:] = self._reference
        self._key = sender << 40
        self._view = self.words.data
        self.faults = 0
        self._has_arrived = False

    @property
    def buffer(self) -> list[Any]:
        """The message in the form for MPI."""
        from mpi4py import MPI

        return [self.words, MPI.INT64_T]

    def part(self, size: int) -> list[Any]:
        """The first ``size`` bytes in the form for MPI."""
        from mpi4py import MPI

        return [self.words[: size // WORD], MPI.INT64_T]

    def stamp(self, step: int) -> None:
        """Prepare the message for a step."""
        self._view[0] = self._key + step

    def check(self, step: int) -> None:
        """Count a fault if the received message is not that of this step."""
        self._has_arrived = True
        self.faults += self._view[0] != self._key + step

    def wrong(self) -> str:
        """The faults of all received messages: the first words, and the rest at the end."""
        if self.faults:
            return f"{self.faults} messages of a wrong rank or step"
        right = not self._has_arrived or np.array_equal(self.words[1:], self._reference[1:])
        return "" if right else "words of a message"
