"""Variant tarragon: the parts of a process's block as a graph of tasks (Cicotti 2011, chapter 5).

Parts of one process share its block, so a message within it only says that a step is done.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runner import tarragon
from runner.apps.common_box import Box, box_cells, face_of
from runner.apps.common_layout import Layout
from runner.apps.common_meter import Timed, meter_of
from runner.apps.jacobi3d import regions
from runner.apps.jacobi3d.block import Block
from runner.apps.jacobi3d.problem import DEPTH
from runner.native import library


class Cells(tarragon.GridTask):
    """The cells ``box`` of a block; ``remote`` faces (axis, side, task) are messages."""

    def __init__(
        self, block: Block, box: Box, remote: list[tuple[int, int, int]], padding: int, steps: int
    ) -> None:
        super().__init__(steps)
        self.fields = block.fields
        self.cells = tuple(field.reshape(-1) for field in block.fields)
        self.geometry, self.weights = block.geometry(box), block.weights
        self._own = {task: face_of(box, axis, side, False, DEPTH) for axis, side, task in remote}
        self._ghosts = {task: face_of(box, axis, side, True, DEPTH) for axis, side, task in remote}
        self.padding = padding
        self.kernels_s = np.zeros(3)
        """Seconds of the kernel; wall and CPU seconds of the steps that were sampled."""

    def bytes_to(self, task: int) -> int:
        """Bytes of the message to a task in each step."""
        own = self._own.get(task)
        return 0 if own is None else 8 * self.padding * box_cells(own)

    def vinit(self) -> None:
        # In the order of the messages.
        self.own = np.array([self._own[task] for task in self.targets], np.int64).reshape(-1, 6)
        self.ghosts = np.array([self._ghosts[task] for task in self.sources], np.int64)
        self.ghosts = self.ghosts.reshape(-1, 6)
        super().vinit()

    def compute(self, step: int) -> None:
        """Update the cells from field ``step % 2`` into the other field."""
        if step > 0 and len(self.ghosts) > 0:
            with self.ctx.buffering():
                for n in range(len(self.ghosts)):
                    buffer = self.inputs[2 * n + (step - 1) % 2]
                    library.unpack(self.fields[step % 2], self.ghosts[n], buffer)
        regions.compute(self, step)
        if len(self.own) > 0:
            with self.ctx.buffering():
                for n in range(len(self.own)):
                    buffer = self.outputs[2 * n + step % 2]
                    library.pack(self.fields[(step + 1) % 2], self.own[n], buffer)


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
        graph = self._graph(iterations)
        runtime.graph_init(graph)
        runtime.graph_execute(graph)
        self.blocks[0].current = iterations % 2
        kernels_s = np.array([task.kernels_s for task in graph])
        _, sampled, cpu = kernels_s.sum(axis=0).tolist()
        meters = [meter_of(times, sampled, cpu) for times in runtime.times]
        seconds = kernels_s[:, 0].tolist()
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
                other = face.process * parts + face.local
                task.connect(other, max_size=task.bytes_to(other))
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
