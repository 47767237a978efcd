"""The messages over the faces of a box: buffers, bound copies, and the part of each message.

A star stencil reads no edges or corners. So each face is one message of some layers of cells, and
all messages of a box are independent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from runner.apps.common_box import Box, box_cells, face_of
from runner.native.kernels import load, scalars

Field = NDArray[np.float64]
Message = tuple[Field, int, int]
"""Part of a buffer, the other rank, the tag."""


class Faces:
    """Messages of the cells ``box`` over ``remote`` faces (axis, side, other rank).

    ``fields`` are two arrays [z][y][x] of doubles; ``pack[f]`` and ``unpack[f]`` copy between field
    ``f`` and the buffers. ``own`` and ``ghosts`` are the boxes, ``depth`` cells thick, that
    ``sends`` and ``receives`` carry, in the order of ``remote``.

    ``planes``: a field may hold several grids one after the other along z. These are the planes
    where the exchanged grids begin; ``box`` is that of a grid that begins at plane 0. A message
    holds its face of each, in this order. Each message is ``padding`` times as long as its faces.
    Tags are ``tag`` to ``tag + 5``.
    """

    def __init__(
        self,
        fields: tuple[Field, Field],
        box: Box,
        remote: Sequence[tuple[int, int, int]],
        depth: int,
        *,
        padding: int = 1,
        planes: Sequence[int] = (0,),
        tag: int = 0,
    ) -> None:
        self.remote = [(axis, side) for axis, side, _ in remote]
        """Axis and side of each message."""
        self.own = [face_of(box, axis, side, False, depth) for axis, side, _ in remote]
        self.ghosts = [face_of(box, axis, side, True, depth) for axis, side, _ in remote]
        lengths = [padding * len(planes) * box_cells(face) for face in self.own]
        starts = [sum(lengths[:n]) for n in range(len(lengths))]
        outgoing, incoming = np.zeros(sum(lengths)), np.zeros(sum(lengths))
        self.bytes = outgoing.nbytes
        self.pack = copier("pack", fields, outgoing, _placed(starts, self.own, planes))
        self.unpack = copier("unpack", fields, incoming, _placed(starts, self.ghosts, planes))
        # A message is named by the face of its sender: a message that arrives at my low face left
        # the neighbour through its high face.
        self.sends: list[Message] = []
        self.receives: list[Message] = []
        for (axis, side, rank), a, n in zip(remote, starts, lengths, strict=True):
            self.sends.append((outgoing[a : a + n], rank, tag + 2 * axis + side))
            self.receives.append((incoming[a : a + n], rank, tag + 2 * axis + 1 - side))


def copier(
    kernel: str, fields: tuple[Field, Field], buffer: Field, boxes: Iterable[tuple[int, Box]]
) -> tuple[Callable[[], None], Callable[[], None]]:
    """``pack`` or ``unpack`` for boxes with their positions in the buffer, for both fields."""
    placed = [(place, *box) for place, box in boxes]
    head = [*fields[0].shape, len(buffer), len(placed)]
    table = scalars(head + [number for line in placed for number in line])
    kernels = load("runner.apps.common_kernels")
    a, b = fields
    return kernels.bind(kernel, a, buffer, table), kernels.bind(kernel, b, buffer, table)


def _placed(
    starts: Sequence[int], boxes: Sequence[Box], planes: Sequence[int]
) -> Iterable[tuple[int, Box]]:
    """The box of each grid with its place in the buffer, face after face."""
    for start, box in zip(starts, boxes, strict=True):
        z0, z1, *across = box
        for n, plane in enumerate(planes):
            y0, y1, x0, x1 = across
            yield start + n * box_cells(box), (plane + z0, plane + z1, y0, y1, x0, x1)
