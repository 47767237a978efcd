"""The memory of the core's records, and a rank's part of a graph in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runner.runtimes.core.arena import Arena
from runner.runtimes.core.words import BITS, CLOSED, LINE, NODE, PART


class Memory:
    """A block of words aligned to a cache line, initially zero.

    In an arena it is aligned to a page.
    """

    def __init__(self, size: int, arena: Arena | None = None) -> None:
        self._array = np.zeros(size + LINE, np.uint8) if arena is None else arena.passing(size)
        start = -self._array.ctypes.data % LINE
        view = memoryview(self._array.data)[start : start + size]
        self.address = int(self._array.ctypes.data) + start
        self.words = view.cast("q")
        self.reals = view.cast("B").cast("d")

    def get(self, address: int) -> int:
        """The word at an address of this block."""
        return self.words[address - self.address >> 3]

    def put(self, address: int, value: int) -> None:
        self.words[address - self.address >> 3] = value

    def get_real(self, address: int) -> float:
        return self.reals[address - self.address >> 3]

    def put_real(self, address: int, value: float) -> None:
        self.reals[address - self.address >> 3] = value


def part_size(count: int) -> int:
    """Bytes of a part with ``count`` regions."""
    return _nodes_at(count) + count * NODE.size


def _nodes_at(count: int) -> int:
    return PART.size + -(-count // BITS) * LINE


class Part:
    """A rank's part of a graph; ``nodes``: the address of each region.

    ``order``: the regions by priority; the first ready one runs.
    """

    def __init__(self, memory: Memory, address: int, order: Sequence[int]) -> None:
        self.memory = memory
        self.address = address
        start, count = address + _nodes_at(len(order)), len(order)
        self.nodes = [start + order.index(n) * NODE.size for n in range(count)]
        self.get, self.put = memory.get, memory.put

    def fill(self, rank: int, first: int, urgent: Sequence[bool]) -> None:
        """Write the records of a part that is still unknown to workers."""
        put, bits = self.put, self.address + PART.size
        put(self.address + PART.rank, rank)
        put(self.address + PART.nodes, min(self.nodes))
        put(self.address + PART.count, len(self.nodes))
        put(self.address + PART.words, -(-len(self.nodes) // BITS))
        for index, node in enumerate(self.nodes):
            place = (node - min(self.nodes)) // NODE.size
            put(node + NODE.part, self.address)
            put(node + NODE.rank, rank)
            put(node + NODE.number, first + index)
            put(node + NODE.word, bits + LINE * (place // BITS))
            put(node + NODE.bit, 1 << place % BITS)
            put(node + NODE.urgent, int(urgent[index]))
            put(node + NODE.gate, CLOSED)
            put(node + NODE.unmet, 1)

    def compiled(self, index: int, entry: int, state: int) -> None:
        """Set this compiled code for a region; it receives the address ``state``."""
        self.put(self.nodes[index] + NODE.entry, entry)
        self.put(self.nodes[index] + NODE.state, state)

    def share(self, index: int, number: int) -> None:
        """Let guests run a region whose code has this number (see :meth:`Core.learn`)."""
        self.put(self.nodes[index] + NODE.shared, number)
