"""Needleman-Wunsch as a graph of tasks (Cicotti 2011, 6.2): one for each block, or for each row.

A task for each row still computes and sends block by block: fewer tasks, the same work.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runner.programs.apps.needleman_wunsch import matrix
from runner.programs.apps.needleman_wunsch.options import Options
from runner.programs.apps.needleman_wunsch.problem import Bases, Block, cut
from runner.runtimes import tarragon


class BlockTask(tarragon.CompiledTask):
    """One block; it needs the row above it and the column before it."""

    dtype = np.int32

    def __init__(self, block: Block) -> None:
        super().__init__(steps=1)
        self.down, self.along = block.down, block.along
        self.line = block.first_line()
        """The row above, which becomes the last row."""
        self.left = block.first_column()
        self.right = np.empty_like(self.left)
        # Number of the message from above, from before, to below, along; -1 for none.
        self.above = self.before = self.below = self.behind = -1

    def vinit(self) -> None:
        self.above = _place(self.sources, self.id - self.graph.map.shape[1])
        self.before = _place(self.sources, self.id - 1)
        self.below = _place(self.targets, self.id + self.graph.map.shape[1])
        self.behind = _place(self.targets, self.id + 1)
        super().vinit()

    def compute(self, step: int) -> None:
        """Sweep the block."""
        line = self.outputs[2 * self.below] if self.below >= 0 else self.line
        upper = self.inputs[2 * self.above] if self.above >= 0 else self.line
        for j in range(len(self.line)):
            line[j] = upper[j]
        left = self.inputs[2 * self.before] if self.before >= 0 else self.left
        right = self.outputs[2 * self.behind] if self.behind >= 0 else self.right
        matrix.sweep(self.down, self.along, line, left, right)

    @property
    def score(self) -> int:
        """The last entry, of the last block."""
        return int(self.line[-1])


def _place(tasks: list[int], number: int) -> int:
    return tasks.index(number) if number in tasks else -1


class PanelTask(tarragon.CompiledTask):
    """A row of blocks, from left to right, one in each step; it needs the row above the block."""

    dtype = np.int32

    def __init__(self, blocks: list[Block], row: int) -> None:
        super().__init__(steps=len(blocks))
        self.down = blocks[0].down
        self.parts = [block.along for block in blocks]
        self.lines = [block.first_line() for block in blocks[: len(blocks) if row == 0 else 1]]
        """The rows above the blocks, if this is the first row."""
        self.left = blocks[0].first_column()
        """The last column of the block before."""
        self.line = np.empty(1 + max(map(len, self.parts)), np.int32)
        self.above = self.below = 0
        """1 if there is a row above, and below."""

    def vinit(self) -> None:
        self.above, self.below = len(self.sources), len(self.targets)
        super().vinit()

    def compute(self, step: int) -> None:
        """Sweep the next block."""
        along = self.parts[step]
        line = self.outputs[step % 2] if self.below > 0 else self.line
        upper = self.inputs[step % 2] if self.above > 0 else self.lines[step]
        for j in range(len(along) + 1):
            line[j] = upper[j]
        matrix.sweep(self.down, along, line, self.left, self.left)

    @property
    def score(self) -> int:
        """The last entry, of the last row."""
        return int(self.line[len(self.parts[-1])])


class Alignment:
    """The graph of one alignment on this process; rows of blocks are distributed round-robin."""

    def __init__(self, comm: Any, first: Bases, second: Bases, options: Options) -> None:
        self._runtime = tarragon.Tarragon(comm, options.config)
        self._first, self._second = first, second
        self._rows, self._columns = cut(len(first), options.rows), cut(len(second), options.columns)
        self._panels = options.variant == "panel"
        self._wavefront = options.config.priority == "wavefront"
        self.score: int | None = None
        self.tasks = 0
        self.exec_time = self.init_time = 0.0

    @property
    def times(self) -> list[Any]:
        """The times of each worker."""
        return self._runtime.times

    def run(self) -> None:
        """Build the graph and run it."""
        graph: Any = self._panel_graph() if self._panels else self._block_graph()
        self.tasks = graph.size
        visitors = []
        if self._wavefront:
            across = 1 if self._panels else len(self._columns)
            # The nearer to the top row, the higher the priority (Cicotti 2011, 6.3).
            visitors.append(tarragon.PriorityVisitor(lambda task: -(task // across)))
        self._runtime.graph_init(graph, visitors)
        self._runtime.graph_execute(graph)
        self.exec_time, self.init_time = self._runtime.exec_time, self._runtime.init_time
        last = graph.size - 1
        self.score = graph.task(last).score if graph.is_local(last) else None

    def close(self) -> None:
        """Free the communicator."""
        self._runtime.finalize()

    def _block(self, row: int, column: int) -> Block:
        return Block(self._first, self._second, self._rows[row], self._columns[column])

    def _block_graph(self) -> Any:
        rows, columns = len(self._rows), len(self._columns)
        places = tarragon.CartesianMap((rows, columns))
        owners = (task // columns % self._runtime.size for task in range(places.size))
        graph: tarragon.VectorGraph[BlockTask] = tarragon.VectorGraph(
            self._runtime,
            lambda task: BlockTask(self._block(*divmod(task, columns))),
            places,
            tarragon.SparseDistribution(owners, self._runtime.size),
        )
        for task in graph:
            below, behind = places.next(task.id, 0), places.next(task.id, 1)
            if below is not None:
                task.connect(below, max_size=task.line.nbytes)
            if behind is not None:
                task.connect(behind, max_size=task.left.nbytes)
        return graph

    def _panel_graph(self) -> Any:
        rows = len(self._rows)
        places = tarragon.IdentityMap(rows)
        graph: tarragon.VectorGraph[PanelTask] = tarragon.VectorGraph(
            self._runtime,
            lambda row: PanelTask([self._block(row, c) for c in range(len(self._columns))], row),
            places,
            tarragon.SparseDistribution(
                (row % self._runtime.size for row in range(rows)), self._runtime.size
            ),
        )
        for task in graph:
            below = places.next(task.id)
            if below is not None:
                task.connect(below, max_size=task.line.nbytes)
        return graph
