"""What the regions of a rank do: functions in the dialect of compiled regions.

``part`` is a :class:`runner.apps.jacobi3d.mated.Part`, ``i`` the iteration, ``field`` the number of
a field. The methods of the part do the same for Python, by the kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.apps.common_meter import SAMPLE
from runner.apps.jacobi3d import stencil
from runner.native import library

if TYPE_CHECKING:
    from runner.apps.jacobi3d.mated import Part
    from runner.apps.jacobi3d.variant_tarragon import Cells
    from runner.apps.jacobi3d.variant_tpod import BlockTask


def compute(part: Part | Cells | BlockTask, i: int) -> None:
    """Update the cells from field ``i % 2`` into the other field."""
    sampled = i % SAMPLE == 0
    cpu = part.ctx.cpu_seconds() if sampled else 0.0
    begin = part.ctx.seconds()
    stencil.update(part.cells[i % 2], part.cells[(i + 1) % 2], part.geometry, part.weights)
    spent = part.ctx.seconds() - begin
    part.kernels_s[0] += spent
    if sampled:
        part.kernels_s[1] += spent
        part.kernels_s[2] += part.ctx.cpu_seconds() - cpu


def receive(part: Part) -> None:
    """Start to receive the neighbours' faces."""
    for n in range(len(part.incoming)):
        part.ctx.irecv(part.incoming[n], part.sources[n], part.incoming_tags[n])


def pack(part: Part, field: int) -> None:
    """Copy the own faces into the buffers."""
    if len(part.packed) > 0:
        with part.ctx.buffering():
            for n in range(len(part.packed)):
                library.pack(part.fields[field], part.own[n], part.packed[n])


def send(part: Part) -> None:
    """Start to send the buffers."""
    for n in range(len(part.outgoing)):
        part.ctx.isend(part.outgoing[n], part.targets[n], part.outgoing_tags[n])


def unpack(part: Part, field: int) -> None:
    """Copy what has arrived into the ghosts."""
    if len(part.received) > 0:
        with part.ctx.buffering():
            for n in range(len(part.received)):
                library.unpack(part.fields[field], part.ghosts[n], part.received[n])
