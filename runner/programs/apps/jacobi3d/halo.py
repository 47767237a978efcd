"""The exchange of a block's ghost cells by plain MPI, without blocking calls."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.meter import Meter
from runner.programs.apps.jacobi3d.block import Block
from runner.programs.apps.jacobi3d.faces import Faces


class Halo:
    """The messages of a process with one rank, made once before the iterations."""

    def __init__(self, comm: Any, block: Block, layout: Layout) -> None:
        from mpi4py import MPI

        self._comm, self._block = comm, block
        self._wait, self._test = MPI.Request.Waitall, MPI.Request.Testall
        self.cut = [(f.axis, f.side, f.process) for f in layout.faces(comm.rank, 0)]
        self._faces = Faces(block, block.whole, self.cut, layout.padding)
        self.messages, self.bytes = len(self.cut), self._faces.bytes
        """Numbers of messages and bytes sent in one exchange."""

    def exchange(self, meter: Meter) -> None:
        """Fill the ghosts of the newest field.

        It does :meth:`start` and :meth:`finish` in one. All variants are compared with flat MPI, so
        flat MPI is not slowed by calls and clocks that it does not need.
        """
        comm, current, faces = self._comm, self._block.current, self._faces
        begin = perf_counter()
        requests = [comm.Irecv(buffer, rank, tag) for buffer, rank, tag in faces.receives]
        post_end = perf_counter()
        faces.pack[current]()
        pack_end = perf_counter()
        requests += [comm.Isend(buffer, rank, tag) for buffer, rank, tag in faces.sends]
        send_end = perf_counter()
        self._wait(requests)
        wait_end = perf_counter()
        faces.unpack[current]()
        meter.mpi += (post_end - begin) + (send_end - pack_end)
        meter.waiting += wait_end - send_end
        meter.buffering += (pack_end - post_end) + (perf_counter() - wait_end)

    def start(self, meter: Meter) -> list[Any]:
        """Send the faces of the newest field; returns the requests for :meth:`finish`."""
        comm, faces = self._comm, self._faces
        begin = perf_counter()
        requests = [comm.Irecv(buffer, rank, tag) for buffer, rank, tag in faces.receives]
        post_end = perf_counter()
        faces.pack[self._block.current]()
        pack_end = perf_counter()
        requests += [comm.Isend(buffer, rank, tag) for buffer, rank, tag in faces.sends]
        meter.mpi += (post_end - begin) + (perf_counter() - pack_end)
        meter.buffering += pack_end - post_end
        return requests

    def progress(self, requests: list[Any], meter: Meter) -> None:
        """Let the MPI library make progress: most libraries do so only inside calls."""
        begin = perf_counter()
        self._test(requests)
        meter.mpi += perf_counter() - begin

    def finish(self, requests: list[Any], meter: Meter) -> None:
        """Wait for the messages and unpack them."""
        begin = perf_counter()
        self._wait(requests)
        meter.waiting += perf_counter() - begin
        meter.copy(self._faces.unpack[self._block.current])
