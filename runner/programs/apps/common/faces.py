"""The messages over the faces of a box: buffers, bound copies, and the part of each message.

A star stencil reads no edges or corners. So each face is one message of some layers of cells, and
all messages of a box are independent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.common.box import Box, box_cells, face_of, shift
from runner.runtimes.core.kernels import load, scalars

Field = NDArray[np.float64]
Message = tuple[Field, int, int]
"""Part of a buffer, the other rank, the tag."""

Copies = tuple[Callable[[], None], Callable[[], None]]
"""A copy from or to the first field, and the same for the second one."""


class Faces:
    """Messages of the cells ``box`` over ``remote`` faces (axis, side, other rank).

    ``fields`` are two arrays [z][y][x] of doubles; ``pack[f]`` and ``unpack[f]`` copy between field
    ``f`` and the buffers. ``sends`` and ``receives`` are the messages, in the order of ``remote``.

    ``planes``: a field may hold several grids along z. These are the planes at which the exchanged
    grids start; ``box`` is that of a grid starting at plane 0. A message holds its face, ``depth``
    cells thick, of each grid, in this order. Each message is ``padding`` times as long as its
    faces. Tags are ``tag`` to ``tag + 5``.
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
        self._fields = fields
        own, ghosts = (
            [face_of(box, axis, side, ghost, depth) for axis, side, _ in remote]
            for ghost in (False, True)
        )
        lengths = [padding * len(planes) * box_cells(face) for face in own]
        starts = [sum(lengths[:n]) for n in range(len(lengths))]
        self._places = [
            start + n * box_cells(face)
            for start, face in zip(starts, own, strict=True)
            for n in range(len(planes))
        ]
        self._outgoing, self._incoming = np.zeros(sum(lengths)), np.zeros(sum(lengths))
        self.bytes = self._outgoing.nbytes
        self.own = [shift(face, plane) for face in own for plane in planes]
        self.ghosts = [shift(face, plane) for face in ghosts for plane in planes]
        """The sent and received boxes of each grid, message after message."""
        self.out_parts = self._parts(self._outgoing)
        self.in_parts = self._parts(self._incoming)
        """The part of a message for each box."""
        # A message is identified by the face of its sender: a message that arrives at my low face
        # left the neighbour through its high face.
        self.sends: list[Message] = []
        self.receives: list[Message] = []
        for (axis, side, rank), a, n in zip(remote, starts, lengths, strict=True):
            self.sends.append((self._outgoing[a : a + n], rank, tag + 2 * axis + side))
            self.receives.append((self._incoming[a : a + n], rank, tag + 2 * axis + 1 - side))

    @cached_property
    def pack(self) -> Copies:
        return copier("pack", self._fields, self._outgoing, self._place_pairs(self.own))

    @cached_property
    def unpack(self) -> Copies:
        return copier("unpack", self._fields, self._incoming, self._place_pairs(self.ghosts))

    def _parts(self, buffer: Field) -> list[Field]:
        return [
            buffer[place : place + box_cells(box)] for place, box in self._place_pairs(self.own)
        ]

    def _place_pairs(self, boxes: Sequence[Box]) -> Iterable[tuple[int, Box]]:
        return zip(self._places, boxes, strict=True)


class FaceTables:
    """The boxes, parts and messages of several :class:`Faces`, one after the other, as arrays.

    ``own`` and ``ghosts`` are arrays [box][6]; the rest are lists, as compiled code needs them.
    """

    def __init__(self, exchanges: Sequence[Faces]) -> None:
        self.own, self.ghosts = (
            np.array(boxes, np.int64).reshape(-1, 6)
            for boxes in (
                [b for f in exchanges for b in f.own],
                [b for f in exchanges for b in f.ghosts],
            )
        )
        self.out_parts = [part for faces in exchanges for part in faces.out_parts]
        self.in_parts = [part for faces in exchanges for part in faces.in_parts]
        self.sends = [message for faces in exchanges for message in faces.sends]
        self.receives = [message for faces in exchanges for message in faces.receives]


def copier(
    kernel: str, fields: tuple[Field, Field], buffer: Field, boxes: Iterable[tuple[int, Box]]
) -> Copies:
    """``pack`` or ``unpack`` for boxes with their positions in the buffer, for both fields."""
    entries = [(place, *box) for place, box in boxes]
    head = [*fields[0].shape, len(buffer), len(entries)]
    table = scalars(head + [number for line in entries for number in line])
    kernels = load("runner.programs.apps.common.kernels")
    a, b = fields
    return kernels.bind(kernel, a, buffer, table), kernels.bind(kernel, b, buffer, table)
