"""Stencils as a graph of tasks on Tarragon: a task for each part of a process's cells.

Parts of one process share its cells, so a message within it only says that a step is done.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from runner.programs.apps.common.box import Box, box_cells, face_of, shift
from runner.programs.apps.common.faces import Field
from runner.programs.apps.common.layout import Layout
from runner.programs.apps.common.meter import RunTimes, timed_of
from runner.runtimes import tarragon
from runner.runtimes.core import library

Remote = list[tuple[int, int, int]]
"""Faces with another process behind them: axis, side, the task there."""


class Cells(tarragon.GridTask):
    """The cells ``box`` of two fields [z][y][x]; ``remote`` faces are messages.

    A field may hold several grids starting at ``planes``; a message holds its face, ``depth`` cells
    thick, of each, and is ``padding`` times as long. Subclasses define ``compute``, with
    :func:`unpack` and :func:`pack`.
    """

    def __init__(
        self,
        fields: tuple[Field, Field],
        box: Box,
        remote: Remote,
        depth: int,
        steps: int,
        *,
        planes: Sequence[int] = (0,),
        padding: int = 1,
    ) -> None:
        super().__init__(steps)
        self.fields = fields
        self.grids, self.share = len(planes), padding * len(planes)
        self._box, self._depth, self._planes = box, depth, planes
        self._sides = {task: (axis, side) for axis, side, task in remote}
        self.kernels_s = np.zeros(3)
        """Seconds of the kernel; wall and CPU seconds of the sampled steps."""

    def bytes_to(self, task: int) -> int:
        """Bytes of the message to a task in each step; 0 within the process."""
        return 8 * self.share * box_cells(self._face(task, False)) if task in self._sides else 0

    def vinit(self) -> None:
        # In the order of the messages.
        self.own, self.ghosts = self._boxes(self.targets, False), self._boxes(self.sources, True)
        super().vinit()

    def _face(self, task: int, ghost: bool) -> Box:
        axis, side = self._sides[task]
        return face_of(self._box, axis, side, ghost, self._depth)

    def _boxes(self, tasks: Sequence[int], ghost: bool) -> Any:
        """The box of each grid, face after face: array [box][6]."""
        boxes = [shift(self._face(task, ghost), n) for task in tasks for n in self._planes]
        return np.array(boxes, np.int64).reshape(-1, 6)


def unpack(task: Cells, message: int, field: int) -> None:
    """Fill the ghosts of a field from the neighbours' messages of this number."""
    if len(task.ghosts) > 0:
        with task.ctx.buffering():
            for n in range(len(task.ghosts) // task.grids):
                buffer = task.inputs[2 * n + message % 2]
                cells = len(buffer) // task.share
                for grid in range(task.grids):
                    part = buffer[grid * cells : (grid + 1) * cells]
                    library.unpack(task.fields[field], task.ghosts[n * task.grids + grid], part)


def pack(task: Cells, message: int, field: int) -> None:
    """Copy the faces of a field into the messages of a step; those of the last step are not
    sent."""
    if len(task.own) > 0 and message + 1 < task.steps:
        with task.ctx.buffering():
            for n in range(len(task.own) // task.grids):
                buffer = task.outputs[2 * n + message % 2]
                cells = len(buffer) // task.share
                for grid in range(task.grids):
                    part = buffer[grid * cells : (grid + 1) * cells]
                    library.pack(task.fields[field], task.own[n * task.grids + grid], part)


class AsGraph(ABC):
    """The solver of one process; :meth:`run` may be called again after the fields are reset."""

    def __init__(self, comm: Any, layout: Layout, config: tarragon.Config) -> None:
        self._comm, self._layout = comm, layout
        self._runtime = tarragon.Tarragon(comm, config)

    @abstractmethod
    def task(self, local: int, remote: Remote, steps: int) -> Cells:
        """Create the task of a part of this process's cells."""

    def run(self, steps: int) -> RunTimes:
        """Time the steps of the tasks on this process, after a barrier."""
        runtime = self._runtime
        graph = self._graph(steps)
        runtime.graph_init(graph)
        runtime.graph_execute(graph)
        traffic = runtime.messages, runtime.bytes
        return timed_of(runtime.exec_time, runtime.times, graph, traffic)

    def _graph(self, steps: int) -> tarragon.VectorGraph[Cells]:
        layout, processes, parts = self._layout, self._comm.size, self._layout.local_count
        graph: tarragon.VectorGraph[Cells] = tarragon.VectorGraph(
            self._runtime,
            lambda task: self._make(task, steps),
            tarragon.IdentityMap(processes * parts),
        )
        for task in graph:
            process, local = divmod(task.id, parts)
            for face in layout.faces(process, local):
                other = face.process * parts + face.local
                task.connect(other, max_size=task.bytes_to(other))
        return graph

    def _make(self, task: int, steps: int) -> Cells:
        parts = self._layout.local_count
        process, local = divmod(task, parts)
        remote = [
            (face.axis, face.side, face.process * parts + face.local)
            for face in self._layout.faces(process, local)
            if face.process != process
        ]
        return self.task(local, remote, steps)
