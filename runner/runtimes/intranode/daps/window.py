"""Windows: arrays of all ranks that others read, write and add to without the owner's part."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from runner.runtimes.intranode.cab_records import ADD_REALS, ADD_WORDS
from runner.runtimes.intranode.daps.daps_records import FETCH, GET, PUT
from runner.runtimes.intranode.errors import RegionError
from runner.runtimes.intranode.region import Region

Array = NDArray[Any]
Outline = tuple[int, tuple[int, ...], str, Any]
"""Address, shape, type and strides of an array of another rank."""
Index = int | slice | tuple[int | slice, ...]
_KINDS = {np.dtype(np.float64): ADD_REALS, np.dtype(np.int64): ADD_WORDS}


class _Far:
    """An array at an address of another rank; it is never read or written here."""

    def __init__(self, address: int, shape: tuple[int, ...], kind: str, strides: Any) -> None:
        self.__array_interface__ = {
            "data": (address, False),
            "shape": shape,
            "typestr": kind,
            "strides": strides,
            "version": 3,
        }


class Operations(Protocol):
    """The basis of windows: operations on memory of other ranks."""

    rank: int
    """The number of the own rank."""

    def as_rank(self, rank: int) -> int:
        """The rank; raises :class:`IntranodeError` if it does not exist."""
        ...

    def region(self, array: Array) -> Region:
        """The elements of a shared array; raises :class:`RegionError` for other arrays."""
        ...

    def operate(self, kind: int, rank: int, far: Region, own: Region) -> None:
        """Start an operation on memory of another rank."""
        ...

    def fetch(self, kind: int, rank: int, far: Region, value: int) -> int:
        """An operation whose result is a number; waits for it."""
        ...

    def free(self, own: Outline) -> None:
        """End the window whose own array this is; collective."""
        ...


class Window:
    """One array of each rank; created by all ranks together (:meth:`Daps.window`).

    ``at`` names a part of the other rank's array: whole numbers and slices, for all or the first
    axes; None: all of it.  A part may have gaps on up to three axes.  The local array must be
    shared, of the same type and number of elements, and must not change (or not be read, for a
    get) before a flush.  All but :meth:`fetch_add` return at once.  They raise
    :class:`RegionError` for arrays that do not fit.
    """

    def __init__(self, daps: Operations, arrays: list[Outline]) -> None:
        self._daps = daps
        # None marks an empty array: numpy needs an address even for that.
        self._arrays = [np.asarray(_Far(*one)) if one[0] else None for one in arrays]
        self._own = arrays[daps.rank]

    def put(self, rank: int, source: Array, at: Index | None = None) -> None:
        """Write elements to another rank's array."""
        self._start(PUT, rank, source, at)

    def get(self, rank: int, target: Array, at: Index | None = None) -> None:
        """Read elements of another rank's array."""
        self._start(GET, rank, target, at)

    def accumulate(self, rank: int, source: Array, at: Index | None = None) -> None:
        """Add float64 or int64 elements to another rank's array; no other sum comes between."""
        kind = _KINDS.get(source.dtype)
        if kind is None:
            raise RegionError(
                f"an array of {source.dtype} is added: expected float64 or int64",
                code="intranode.array",
            )
        self._start(kind, rank, source, at)

    def fetch_add(self, rank: int, index: Index, value: int) -> int:
        """Add to one int64 element of another rank's array; returns the previous value."""
        part = self._part(rank, index)
        if part.dtype != np.int64 or part.size != 1:
            raise RegionError(
                f"fetch_add of {part.size} elements of {part.dtype}: expected one of int64",
                code="intranode.array",
            )
        return self._daps.fetch(FETCH, rank, Region.of(part), value)

    def _start(self, kind: int, rank: int, array: Array, at: Index | None) -> None:
        part = self._part(rank, at)
        if part.dtype != array.dtype or part.size != array.size:
            raise RegionError(
                f"{array.size} elements of {array.dtype} for {part.size} of {part.dtype} in the "
                f"window of rank {rank}: expected the same number and type",
                code="intranode.array",
            )
        own, far = self._daps.region(array), Region.of(part)
        if kind in (ADD_REALS, ADD_WORDS) and not (_is_aligned(own) and _is_aligned(far)):
            raise RegionError(
                "elements that are added do not lie on multiples of 8 bytes", code="intranode.array"
            )
        if array.size:
            self._daps.operate(kind, rank, far, own)

    def _part(self, rank: int, at: Index | None) -> Array:
        """The part of another rank's array, whose elements are not accessed."""
        array = self._arrays[self._daps.as_rank(rank)]
        if array is None:
            array = np.zeros(0, self._own[2])
        parts = at if isinstance(at, tuple) else () if at is None else (at,)
        if len(parts) > array.ndim:
            raise RegionError(
                f"{len(parts)} indices for an array with {array.ndim} axes", code="intranode.array"
            )
        slices = []
        for part, count in zip(parts, array.shape, strict=False):
            if isinstance(part, slice):
                slices.append(part)
                continue
            number = int(part)
            if not -count <= number < count:
                raise RegionError(
                    f"index {number}: expected {-count} to {count - 1}", code="intranode.array"
                )
            slices.append(slice(number % count, number % count + 1))
        view: Array = array[tuple(slices)]
        return view

    def free(self) -> None:
        """No rank uses the window any more; collective, with a barrier."""
        self._daps.free(self._own)


def _is_aligned(region: Region) -> bool:
    places = (region.address, region.run, *(stride for _, stride in region.axes))
    return not any(place % 8 for place in places)


def outline_of(array: Array) -> Outline:
    """The facts about an array that other ranks need."""
    return array.ctypes.data, array.shape, array.dtype.str, array.strides
