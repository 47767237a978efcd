"""Variant cab: processes of one node copy their ghosts straight from their neighbours' cells.

The cells are in memory shared by the node. The message of a face is its layer of cells of all
variables, in place with gaps. The receiver copies it to its own ghosts in chunks (packed and
unpacked in one step, unless ``--bundle off``), and waiting processes steal some of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from runner.programs.apps.common.box import Box, face_of
from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.faces import Field
from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.meter import Meter, RunTimes
from runner.programs.apps.minighost.domain import Domain
from runner.programs.apps.minighost.options import Options
from runner.programs.apps.minighost.problem import DEPTH
from runner.programs.apps.minighost.variant_mpi import Bulk
from runner.runtimes.intranode import Cab, Request


class Direct:
    """The messages of a domain's faces for a group of variables, prepared once for both fields.

    ``remote``: faces (axis, side, other rank); tags are ``tag`` to ``tag + 5``.
    """

    def __init__(
        self,
        cab: Cab,
        domain: Domain,
        remote: Sequence[tuple[int, int, int]],
        variables: range,
        tag: int,
    ) -> None:
        self._cab = cab
        self.messages, self.bytes = len(remote), 0
        """Numbers of messages and bytes sent in one exchange."""
        self._requests: list[list[Request]] = []
        """For each field: sends first, because they need no progress of this process."""
        for field in domain.fields:
            sends, receives = [], []
            for axis, side, rank in remote:
                own, ghosts = (
                    _cells(field, face_of(domain.whole, axis, side, ghost, DEPTH), variables)
                    for ghost in (False, True)
                )
                # A message is named by the face of its sender.
                sends.append(cab.send_init(own, rank, tag + 2 * axis + side))
                receives.append(cab.recv_init(ghosts, rank, tag + 2 * axis + 1 - side))
            self._requests.append(sends + receives)
        self.bytes = sum(request.arrays[0].nbytes for request in self._requests[0][: len(remote)])

    def run(self, field: int, meter: Meter, more: bool) -> None:
        """Fill the ghosts of a field, and help others meanwhile.

        The copy is a part of the wait: both count as ``waiting``.
        """
        begin = perf_counter()
        for request in self._requests[field]:
            self._cab.start(request)
        middle = perf_counter()
        self._cab.waitall(self._requests[field])
        meter.mpi += middle - begin
        meter.waiting += perf_counter() - middle


def _cells(field: Field, box: Box, variables: range) -> Field:
    """A box of some variables as a view [variable][z][y][x]."""
    z0, z1, y0, y1, x0, x1 = box
    return field[variables.start : variables.stop, z0:z1, y0:y1, x0:x1]


class StealingBulk(Bulk):
    """The solver of one process; all must be on one node, else :class:`AppUsageError`."""

    def __init__(self, comm: Any, options: Options, layout: Layout) -> None:
        self._cab = Cab(comm, options.intranode)
        if self._cab.size != comm.size:
            raise AppUsageError(
                f"--variant cab: {comm.size} processes on several nodes, {self._cab.size} of them "
                "on this one; its processes share memory: start all on one node, or choose "
                "another variant",
                code="app_option.ranks",
            )
        super().__init__(comm, options, layout)

    def _domain(self, layout: Layout, rank: int, variables: int) -> Domain:
        return Domain(layout.size, *layout.block(rank), variables, self._cab.zeros)

    def _exchanges_of(
        self, remote: Sequence[tuple[int, int, int]], layout: Layout, options: Options
    ) -> Sequence[Direct]:
        return [
            Direct(self._cab, self.domain, remote, group, 6 * group.start) for group in self._groups
        ]

    def solve(self, steps: int) -> RunTimes:
        """As :meth:`Bulk.solve`; also counts the chunks of the timed steps."""
        # No process may read cells while their owner is still setting them.
        self._cab.barrier()
        before = self._cab.chunks
        times = super().solve(steps)
        after = self._cab.chunks
        times.chunks = after.own - before.own, after.given - before.given
        return times
