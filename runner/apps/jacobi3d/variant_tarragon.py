"""Variant tarragon: the parts of a process's block as a graph of tasks (Cicotti 2011, chapter 5).

Parts of one process share its block, so a message within it only says that a step is done.
"""

from __future__ import annotations

from time import perf_counter, thread_time
from typing import Any

from runner import tarragon
from runner.apps.common_layout import Layout
from runner.apps.common_meter import SAMPLE, Timed, meter_of
from runner.apps.jacobi3d.block import Block, Box
from runner.apps.jacobi3d.faces import Faces


class Cells(tarragon.GridTask):
    """The cells ``box`` of a block; ``remote`` faces (axis, side, task) are messages."""

    def __init__(
        self, block: Block, box: Box, remote: list[tuple[int, int, int]], padding: int, steps: int
    ) -> None:
        super().__init__(steps)
        faces = Faces(block, box, remote, padding)
        self._stencil = block.stencil(box)
        self._pack, self._unpack = faces.pack, faces.unpack
        self._faces = {task: buffer for buffer, task, _ in faces.sends}
        self._ghosts = {task: buffer for buffer, task, _ in faces.receives}
        self.seconds = self.sampled = self.sampled_cpu = 0.0
        """In the kernel; wall and CPU seconds of the steps that were sampled."""

    def compute(self, step: int, messages: list[tarragon.Message]) -> None:
        if self._ghosts and messages:
            for message in messages:
                ghosts = self._ghosts.get(message.source)
                if ghosts is not None:
                    ghosts[:] = message.array()
            self._unpack[step % 2]()
        sampled = step % SAMPLE == 0
        cpu = thread_time() if sampled else 0.0
        begin = perf_counter()
        self._stencil[step % 2]()
        spent = perf_counter() - begin
        self.seconds += spent
        if sampled:
            self.sampled_cpu += thread_time() - cpu
            self.sampled += spent
        if self._faces:
            self._pack[1 - step % 2]()

    def message(self, edge: tarragon.Dependency, step: int) -> tarragon.Message:
        face = self._faces.get(edge.target)
        return tarragon.Message() if face is None else tarragon.Message.of(face)


class AsGraph:
    """The solver of one process; :meth:`solve` may be called again after the block is reset."""

    def __init__(
        self, comm: Any, layout: Layout, cache_block: int, config: tarragon.Config
    ) -> None:
        self._comm, self._layout = comm, layout
        self._runtime = tarragon.Tarragon(comm, config)
        self.blocks = [Block(layout.size, *layout.block(comm.rank), cache_block)]

    def solve(self, iterations: int) -> Timed:
        """Time the iterations on this process, after a barrier."""
        runtime = self._runtime
        for steps in (0, iterations):
            # No steps open the connections before the clock starts.
            graph = self._graph(steps)
            runtime.graph_init(graph)
            runtime.graph_execute(graph)
        self.blocks[0].current = iterations % 2
        sampled, cpu = (sum(getattr(t, n) for t in graph) for n in ("sampled", "sampled_cpu"))
        meters = [meter_of(times, sampled, cpu) for times in runtime.times]
        seconds = [task.seconds for task in graph]
        return Timed(runtime.exec_time, meters, seconds, runtime.messages, runtime.bytes)

    def _graph(self, steps: int) -> tarragon.VectorGraph[Cells]:
        layout, processes, parts = self._layout, self._comm.size, self._layout.local_count
        graph: tarragon.VectorGraph[Cells] = tarragon.VectorGraph(
            self._runtime,
            lambda task: self._cells(task, steps),
            tarragon.IdentityMap(processes * parts),
        )
        for task in graph:
            process, local = divmod(task.id, parts)
            for face in layout.faces(process, local):
                edge = task.connect(face.process * parts + face.local, max_size=0)
                if face.process != process:
                    edge.max_size = task.message(edge, 0).size
        return graph

    def _cells(self, task: int, steps: int) -> Cells:
        layout, block = self._layout, self.blocks[0]
        process, local = divmod(task, layout.local_count)
        remote = [
            (face.axis, face.side, face.process * layout.local_count + face.local)
            for face in layout.faces(process, local)
            if face.process != process
        ]
        box = block.box_of(*layout.part(process, local))
        return Cells(block, box, remote, layout.padding, steps)
