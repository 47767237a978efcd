"""The memory that a process's regions touch, and what the running one has touched.

A block is one allocation. While a region runs, each of its granules (the smallest element that was
seen in it) has flags: read before it was written, written, read after it was written. When the
region ends or waits, the flags become runs of bytes (:class:`Runs`), and the block is clean again.
Attributes of objects and variables are granules of blocks too, with a name for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

EXPOSED, WRITTEN, READ_AFTER = 1, 2, 4
"""Flags of a granule: read before a write of the same region; written; read after its own write."""
_AFTER_READ = np.array([f | (READ_AFTER if f & WRITTEN else EXPOSED) for f in range(8)], np.uint8)
_AFTER_WRITE = np.array([f | WRITTEN for f in range(8)], np.uint8)
_SHOWN = 4
"""Most indices of an axis that a text lists one by one."""


@dataclass(frozen=True)
class Runs:
    """Bytes ``starts[n]`` to ``stops[n]`` (excluded) of a block; their flags are ``flags[n]``."""

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    flags: NDArray[np.uint8]


class MemoryBlock:
    """One allocation, or the named places of one object."""

    def __init__(self, number: int, owner: Any, address: int, size: int, granule: int) -> None:
        self.number = number
        self.owner = owner
        """Referenced, so that its memory is not given to another array while the job runs."""
        self.address, self.size, self.granule = address, size, granule
        self.flags = bytearray(size // granule)
        self.name = ""
        self.shown: NDArray[Any] | None = None
        """The array whose indices name the bytes; None for named places."""
        self.places: list[str] = []

    def refine(self) -> None:
        """Use granules of one byte."""
        flags = np.frombuffer(bytes(self.flags), np.uint8)
        self.flags = bytearray(np.repeat(flags, self.granule).tobytes())
        self.granule = 1

    def views(self, address: int, shape: Any, strides: Any, width: int) -> list[NDArray[np.uint8]]:
        """The flags of an array's elements; several arrays if an element has several granules."""
        granule = self.granule
        offset = address - self.address
        if width % granule or offset % granule or any(s % granule for s in strides):
            self.refine()
            granule = 1
        steps = tuple(s // granule for s in strides)
        first = offset // granule
        return [
            np.ndarray(shape, np.uint8, self.flags, first + n, steps)
            for n in range(max(1, width // granule))
        ]

    def take(self) -> Runs:
        """What was touched since the last call."""
        flags = np.frombuffer(bytes(self.flags), np.uint8)
        self.flags[:] = bytes(len(self.flags))
        edges = np.flatnonzero(np.diff(flags, prepend=0, append=0))
        starts, stops = edges[:-1], edges[1:]
        used = flags[starts] > 0
        starts, stops = starts[used], stops[used]
        return Runs(starts * self.granule, stops * self.granule, flags[starts])

    def describe(self, starts: Sequence[int], stops: Sequence[int]) -> str:
        """These bytes as a user names them: ``fields[0][3, 1:9, 4]``."""
        if self.places:
            names = [
                self.places[n] for a, b in zip(starts, stops, strict=True) for n in range(a, b)
            ]
            return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
        if self.shown is None:
            return self.name
        return f"{self.name}[{self._indices(self.shown, starts, stops)}]"

    def _indices(self, array: NDArray[Any], starts: Sequence[int], stops: Sequence[int]) -> str:
        """The smallest box of the array's elements that holds these bytes."""
        if not array.size:
            return ""
        width = array.itemsize
        begins = [np.arange(a // width, -(-b // width)) for a, b in zip(starts, stops, strict=True)]
        shift = self.address - int(array.__array_interface__["data"][0])
        places = np.concatenate(begins) * width + shift
        texts = []
        axes = sorted(range(array.ndim), key=lambda n: -abs(array.strides[n]))
        columns: dict[int, NDArray[np.int64]] = {}
        for axis in axes:
            step = array.strides[axis]
            if array.shape[axis] == 1 or step <= 0:
                columns[axis] = np.zeros(1, np.int64)
                continue
            columns[axis] = np.clip(places // step, 0, array.shape[axis] - 1)
            places = places - columns[axis] * step
        for axis in range(array.ndim):
            low, high = int(columns[axis].min()), int(columns[axis].max())
            texts.append(str(low) if low == high else f"{low}:{high + 1}")
        return ", ".join(texts)


class WatchedMemory:
    """All blocks of a process."""

    def __init__(self) -> None:
        self.blocks: list[MemoryBlock] = []
        self._by_owner: dict[int, MemoryBlock] = {}
        self._places: dict[tuple[int, str], int] = {}
        self._touched: set[MemoryBlock] = set()
        self.is_recording = False

    # Arrays.

    def block_of(self, array: NDArray[Any]) -> MemoryBlock | None:
        """The block of an array's memory; None for an array without elements."""
        owner: Any = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        block = self._by_owner.get(id(owner))
        if block is None:
            low, high = np.lib.array_utils.byte_bounds(owner)
            if high <= low or not array.size:
                return None
            block = self._containing(low, high) or self._add(owner, low, high)
            self._by_owner[id(owner)] = block
        return block

    def _containing(self, low: int, high: int) -> MemoryBlock | None:
        for block in self.blocks:
            if block.address and block.address <= low and high <= block.address + block.size:
                return block
        return None

    def _add(self, owner: NDArray[Any], low: int, high: int) -> MemoryBlock:
        granule = owner.itemsize or 1
        if (high - low) % granule:
            granule = 1
        block = MemoryBlock(len(self.blocks), owner, low, high - low, granule)
        self.blocks.append(block)
        return block

    def name(self, array: NDArray[Any], name: str) -> None:
        """Let a name stand for the memory of an array; the one with the most axes stays."""
        block = self.block_of(array)
        if block is None or array.dtype.hasobject:
            return
        shown = block.shown
        rank = (array.nbytes, array.ndim)
        if shown is None or rank > (shown.nbytes, shown.ndim):
            block.name, block.shown = name, array

    def record_access(self, array: NDArray[Any], key: Any, is_write: bool) -> None:
        """Record an access of ``array[key]``."""
        if not self.is_recording:
            return
        block = self.block_of(array)
        if block is None:
            return
        address = int(array.__array_interface__["data"][0])
        self._touched.add(block)
        table = _AFTER_WRITE if is_write else _AFTER_READ
        for flags in block.views(address, array.shape, array.strides, array.itemsize):
            flags[key] = table[flags[key]]

    # Named places.

    def place(self, owner: Any, kind: str, name: str) -> tuple[MemoryBlock, int]:
        """The block of an object's named places, and the place of a name."""
        number = self._places.get((id(owner), kind))
        if number is None:
            number = self._places[id(owner), kind] = len(self.blocks)
            self.blocks.append(MemoryBlock(number, owner, 0, 0, 1))
        block = self.blocks[number]
        if name not in block.places:
            block.places.append(name)
            block.flags.append(0)
            block.size += 1
        return block, block.places.index(name)

    def touch_place(self, owner: Any, kind: str, name: str, is_write: bool) -> None:
        """Record an access of an attribute, a variable, or of a whole list."""
        if not self.is_recording:
            return
        block, at = self.place(owner, kind, name)
        self._touched.add(block)
        block.flags[at] = int((_AFTER_WRITE if is_write else _AFTER_READ)[block.flags[at]])

    # Turns.

    def take(self) -> dict[int, Runs]:
        """What was touched since the last call, by block."""
        runs = {block.number: block.take() for block in self._touched}
        self._touched.clear()
        return runs

    def apart(self, body: Callable[[], None]) -> dict[int, Runs]:
        """What ``body`` records, apart from the running region: a message's accesses."""
        touched, self._touched = self._touched, set()
        own = [(block, bytes(block.flags)) for block in touched]
        for block, _ in own:
            block.flags[:] = bytes(len(block.flags))
        before, self.is_recording = self.is_recording, True
        body()
        self.is_recording = before
        runs = self.take()
        for block, flags in own:
            if len(block.flags) == len(flags):
                block.flags[:] = flags
            else:
                ratio = len(block.flags) // len(flags)
                block.flags[:] = np.repeat(np.frombuffer(flags, np.uint8), ratio).tobytes()
        self._touched = touched
        return runs
