"""Needleman-Wunsch as a graph of tasks (Cicotti 2011, 6.2): one for each block, or for each row.

A task for each row still computes and sends block by block: fewer tasks, the same work.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from runner import tarragon
from runner.apps.needleman_wunsch.options import Options
from runner.apps.needleman_wunsch.problem import Bases, Block, Scores, cut

COLUMN = 1
"""Key of a message with the last column of a block; others are its last row."""


class BlockTask(tarragon.Task):
    """One block; it fires when the row above and the column before it are there."""

    def __init__(self, block: Block, row: int, column: int) -> None:
        super().__init__()
        self._block = block
        self._row, self._column = row, column
        self._line: tarragon.Message | None = None
        self._left: Scores | None = block.first_column() if column == 0 else None
        self.down: tarragon.Dependency | None = None
        self.along: tarragon.Dependency | None = None
        self.score: int | None = None

    def vinit(self) -> None:
        if self._row == 0:
            self._line = tarragon.Message.of(self._block.first_line())
        self._fire()

    def vinject(self, message: tarragon.Message) -> None:
        if message.key == COLUMN:
            self._left = message.array(np.int32)
        else:
            self._line = message
        self._fire()

    def _fire(self) -> None:
        here = self._line is not None and self._left is not None
        self.state = tarragon.EXEC if here else tarragon.WAIT

    def vexecute(self) -> None:
        message, left = self._line, self._left
        assert message is not None
        assert left is not None
        line = message.array(np.int32)
        column = tarragon.Message(left.nbytes, key=COLUMN)
        self._block.sweep(line, left, column.array(np.int32))
        self._line = self._left = None
        self.state = tarragon.DONE
        if self.down is not None:
            self.down.put(message)
        else:
            self.score = int(line[-1])
        if self.along is not None:
            self.along.put(column)

    def describe(self) -> str:
        pairs = (("row above", self._line), ("column before", self._left))
        missing = [name for name, there in pairs if there is None]
        return f"block {self._row},{self._column} waits for the {' and the '.join(missing)}"


class PanelTask(tarragon.Task):
    """A row of blocks, from left to right; it fires when the next row above is there."""

    def __init__(self, blocks: list[Block], row: int) -> None:
        super().__init__()
        self._blocks = blocks
        self._row = row
        self._next = 0
        self._left = blocks[0].first_column()
        self._lines: deque[tarragon.Message] = deque()
        self.down: tarragon.Dependency | None = None
        self.score: int | None = None

    def vinit(self) -> None:
        if self._row == 0:
            self._lines.extend(tarragon.Message.of(b.first_line()) for b in self._blocks)
        self._fire()

    def vinject(self, message: tarragon.Message) -> None:
        self._lines.append(message)
        self._fire()

    def _fire(self) -> None:
        self.state = tarragon.EXEC if self._lines else tarragon.WAIT

    def vexecute(self) -> None:
        message = self._lines.popleft()
        line = message.array(np.int32)
        right = np.empty_like(self._left)
        self._blocks[self._next].sweep(line, self._left, right)
        self._left = right
        self._next += 1
        if self._next == len(self._blocks):
            self.state = tarragon.DONE
            self.score = int(line[-1])
        else:
            self._fire()
        if self.down is not None:
            self.down.put(message)

    def describe(self) -> str:
        return f"row {self._row} waits for the row above block {self._next}"


class Alignment:
    """The graph of one alignment, on this process; rows of blocks are dealt out in turn."""

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
            # The nearer to the top row, the higher (Cicotti 2011, 6.3).
            visitors.append(tarragon.PriorityVisitor(lambda task: -(task // across)))
        self._runtime.graph_init(graph, visitors)
        self._runtime.graph_execute(graph)
        self.exec_time, self.init_time = self._runtime.exec_time, self._runtime.init_time
        found = [task.score for task in graph if task.score is not None and task.down is None]
        self.score = found[-1] if found else None

    def close(self) -> None:
        """Give back the communicator."""
        self._runtime.finalize()

    def _block(self, row: int, column: int) -> Block:
        return Block(self._first, self._second, self._rows[row], self._columns[column])

    def _block_graph(self) -> Any:
        rows, columns = len(self._rows), len(self._columns)
        places = tarragon.CartesianMap((rows, columns))
        owners = (task // columns % self._runtime.size for task in range(places.size))
        graph: tarragon.VectorGraph[BlockTask] = tarragon.VectorGraph(
            self._runtime,
            lambda task: BlockTask(self._block(*divmod(task, columns)), *divmod(task, columns)),
            places,
            tarragon.SparseDistribution(owners, self._runtime.size),
        )
        largest = 4 * (max(map(len, self._columns)) + 1)
        for task in graph:
            below, beside = places.next(task.id, 0), places.next(task.id, 1)
            if below is not None:
                task.down = task.connect(below, max_size=largest)
            if beside is not None:
                task.along = task.connect(beside, max_size=4 * max(map(len, self._rows)))
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
                task.down = task.connect(below, max_size=4 * (max(map(len, self._columns)) + 1))
        return graph
