"""Regions: memory with regular gaps, for copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.runtimes.core.arena import Arena
from runner.runtimes.intranode.errors import RegionError

_AXES = 3


@dataclass(frozen=True)
class Region:
    """Rows of ``run`` bytes from ``address`` on; ``axes`` are (number, distance in bytes), inner
    first.

    The bytes are in the array's C order, so a part of them may be copied to the same part of
    another region of the same size.
    """

    address: int
    run: int
    axes: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, array: NDArray[Any]) -> Region:
        """The elements of an array.

        Raises :class:`RegionError` for one that has more than three axes with gaps, or a negative
        stride.
        """
        run, axes = array.itemsize, list[tuple[int, int]]()
        if not array.size:
            return cls(array.ctypes.data, 0)
        for count, stride in zip(reversed(array.shape), reversed(array.strides), strict=True):
            if count == 1:
                continue
            if stride < 0:
                raise RegionError(
                    "an array with a negative stride: copy it first", code="intranode.array"
                )
            if not axes and stride == run:
                run *= count
            elif axes and stride == axes[-1][0] * axes[-1][1]:
                axes[-1] = axes[-1][0] * count, axes[-1][1]
            else:
                axes.append((count, stride))
        if len(axes) > _AXES:
            raise RegionError(
                f"an array of shape {array.shape} with {len(axes)} axes that have gaps: expected "
                f"at most {_AXES}",
                code="intranode.array",
            )
        return cls(array.ctypes.data, run, tuple(axes))

    @classmethod
    def in_arena(cls, array: NDArray[Any], arena: Arena) -> Region:
        """The elements of an array in shared memory; raises :class:`RegionError` for other
        arrays."""
        if array.size and not arena.holds(array):
            raise RegionError(
                f"an array of shape {array.shape} is not in shared memory: make it with zeros or "
                "shared_copy",
                code="intranode.array",
            )
        return cls.of(array)

    @property
    def size(self) -> int:
        """Bytes without the gaps."""
        size = self.run
        for count, _ in self.axes:
            size *= count
        return size

    @property
    def whole(self) -> bool:
        """True if there are no gaps."""
        return not self.axes

    def words(self) -> list[int]:
        """The region in the form for compiled code (:data:`.words.REGION`)."""
        axes = [*self.axes, *[(1, 0)] * (_AXES - len(self.axes))]
        return [self.address, self.run, *(word for axis in axes for word in axis)]


def elements(array: NDArray[Any]) -> str:
    """The kind of addition for its elements: ``reals`` or ``words``.

    Raises :class:`RegionError` for other types, and for arrays with gaps.
    """
    if not array.flags.c_contiguous:
        raise RegionError(
            "an array with gaps: only arrays without gaps are added", code="intranode.array"
        )
    if array.dtype == np.float64:
        return "reals"
    if array.dtype in (np.dtype(np.int64), np.dtype(np.uint64)):
        return "words"
    raise RegionError(
        f"an array of {array.dtype}: expected float64, int64 or uint64", code="intranode.array"
    )
