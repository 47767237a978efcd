"""The comparison of a result with that of a serial run, bit by bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.common.grid import Shape

Values = NDArray[np.float64]


class Cells(Protocol):
    """Cells ``start`` to ``stop`` (x, y, z; stop excluded) of a grid."""

    start: Shape
    stop: Shape

    @property
    def interior(self) -> Values:
        """Their values [z][y][x], or [variable][z][y][x]."""


def compare_with_serial(
    comm: Any, blocks: Sequence[Cells], serial: Callable[[], Values]
) -> str | None:
    """Compare every bit of all blocks with a serial run; the difference as text, or None.

    ``serial`` computes the values of the whole grid. Rank 0 calls it, and needs the memory for it.
    Collective; the answer is on every rank.
    """
    if comm.rank != 0:
        comm.send([(block.start, block.stop) for block in blocks], 0)
        for block in blocks:
            comm.Send(np.ascontiguousarray(block.interior), 0)
        return str(text) if (text := comm.bcast(None)) is not None else None
    whole = serial()
    messages = [_difference(whole, b.start, b.stop, b.interior, 0) for b in blocks]
    for rank in range(1, comm.size):
        for start, stop in comm.recv(source=rank):
            values = np.empty_like(_part(whole, start, stop), order="C")
            comm.Recv(values, rank)
            messages.append(_difference(whole, start, stop, values, rank))
    first = next((m for m in messages if m is not None), None)
    comm.bcast(first)
    return first


def _part(whole: Values, start: Shape, stop: Shape) -> Values:
    (x0, y0, z0), (x1, y1, z1) = start, stop
    return whole[..., z0:z1, y0:y1, x0:x1]


def _difference(whole: Values, start: Shape, stop: Shape, values: Values, rank: int) -> str | None:
    reference = _part(whole, start, stop)
    unequal = np.argwhere(reference.view(np.uint64) != values.view(np.uint64))
    if len(unequal) == 0:
        return None
    place = tuple(unequal[0].tolist())
    *variable, z, y, x = place
    of = f"variable {variable[0]} " if variable else ""
    x, y, z = (n + a for n, a in zip((x, y, z), start, strict=True))
    return (
        f"verification failed: {len(unequal)} cells of rank {rank} differ from the serial run, "
        f"first at {of}x={x} y={y} z={z}: {float(values[place])!r}, "
        f"expected {float(reference[place])!r}"
    )
