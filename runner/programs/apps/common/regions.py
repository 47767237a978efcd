"""The regions of ranks that exchange faces: functions in the dialect of compiled regions.

``part`` is a :class:`runner.programs.apps.common.ranks.Part`, ``i`` the iteration, in which field
``i % 2`` is read and the other one written. The methods of the part do the same for Python, by the
kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from runner.runtimes import mate
from runner.runtimes.core import library

if TYPE_CHECKING:
    from runner.programs.apps.common.ranks import Part


def receive(part: Part, i: int) -> None:
    """Start to receive the neighbours' faces."""
    for n in range(len(part.incoming)):
        part.ctx.irecv(part.incoming[n], part.sources[n], part.incoming_tags[n])


def pack(part: Part, i: int) -> None:
    """Copy the new values of the rank's own faces into the buffers."""
    if len(part.out_parts) > 0:
        with part.ctx.buffering():
            for n in range(len(part.out_parts)):
                library.pack(part.fields[(i + 1) % 2], part.own[n], part.out_parts[n])


def send(part: Part, i: int) -> None:
    """Start to send the buffers."""
    for n in range(len(part.outgoing)):
        part.ctx.isend(part.outgoing[n], part.targets[n], part.outgoing_tags[n])


def unpack(part: Part, i: int) -> None:
    """Copy received data into the ghosts of the new values."""
    if len(part.in_parts) > 0:
        with part.ctx.buffering():
            for n in range(len(part.in_parts)):
                library.unpack(part.fields[(i + 1) % 2], part.ghosts[n], part.in_parts[n])


def shared_grid(name: str, compute: Callable[[Any, int], None]) -> mate.Graph:
    """The graph of ranks that share a grid (Martin 2018, 3.16).

    A rank waits only for its neighbours and its own messages. ``compute(part, i)`` is the work on
    the rank's cells, in the dialect too.
    """
    graph = mate.Graph(name)
    for region, depends, body in (
        ("compute", ["pack*", "unpack*", "compute*@"], compute),
        ("receive", ["unpack*"], receive),
        ("pack", ["compute", "send*"], pack),
        ("send", ["pack"], send),
        ("unpack", ["compute", "receive"], unpack),
    ):
        graph.region(region, depends, compiled=True)(body)
    return graph
