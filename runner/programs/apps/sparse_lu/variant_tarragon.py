"""The factorization as a graph: tasks D, L, U and LU of each step (Cicotti 2011, 5.3).

A step has one task D, a task L on each mesh row with blocks below the diagonal, a task U on each
mesh column with blocks beside it, and a task LU on each process whose blocks it changes. Messages
without a payload say that a block is up to date; they stay on their process.
"""

from __future__ import annotations

from typing import Any

from runner.programs.apps.sparse_lu.mesh import Block, Blocks, Mesh
from runner.programs.apps.sparse_lu.symbolic import Analysis
from runner.runtimes import tarragon

D, L, U, LU = range(4)
KINDS = ("D", "L", "U", "LU")
READY = 0
"""Key of a message without payload: a block is up to date."""
INVERSE, LOWER, UPPER = 1, 2, 3
"""Keys of messages with the inverse of a factor, and with a panel."""


class Plan:
    """The tasks of the whole factorization: number <-> (step, kind, process), and their edges."""

    def __init__(self, analysis: Analysis, mesh: Mesh) -> None:
        self.analysis, self.mesh = analysis, mesh
        self.processes = mesh.rows * mesh.columns
        self.each = 4 * self.processes
        self._rows = [self._residues(k, mesh.rows) for k in range(analysis.count)]
        self._columns = [self._residues(k, mesh.columns) for k in range(analysis.count)]

    def _residues(self, k: int, count: int) -> frozenset[int]:
        return frozenset(i % count for i in self.analysis.below[k])

    def number(self, k: int, kind: int, process: int) -> int:
        return k * self.each + kind * self.processes + process

    def task(self, number: int) -> tuple[int, int, int]:
        k, rest = divmod(number, self.each)
        return (k, *divmod(rest, self.processes))

    def owner(self, number: int) -> int:
        return number % self.processes

    def exists(self, k: int, kind: int, process: int) -> bool:
        """True if the process has this task."""
        row, column = self.mesh.place(process)
        here_row, here_column = row == k % self.mesh.rows, column == k % self.mesh.columns
        below, across = row in self._rows[k], column in self._columns[k]
        if kind == D:
            return here_row and here_column
        if kind == L:
            return here_column and below
        if kind == U:
            return here_row and across
        return below and across

    def targets(self, k: int, kind: int, process: int) -> list[tuple[int, int]]:
        """The tasks that a task sends to, each with a key."""
        mesh = self.mesh
        row, column = mesh.place(process)
        if kind == D:
            lower = [(L, r * mesh.columns + column) for r in sorted(self._rows[k])]
            upper = [(U, row * mesh.columns + c) for c in sorted(self._columns[k])]
            return [(self.number(k, which, p), INVERSE) for which, p in (*lower, *upper)]
        if kind == L:
            across = [row * mesh.columns + c for c in sorted(self._columns[k])]
            return [(self.number(k, LU, p), LOWER) for p in across]
        if kind == U:
            down = [r * mesh.columns + column for r in sorted(self._rows[k])]
            return [(self.number(k, LU, p), UPPER) for p in down]
        messages = []
        own_rows = [i for i in self.analysis.below[k] if i % mesh.rows == row]
        own_columns = [j for j in self.analysis.below[k] if j % mesh.columns == column]
        tasks = set()
        for i in own_rows:
            for j in own_columns:
                m = min(i, j)
                tasks.add((m, D if i == j else L if j == m else U))
        for m, which in sorted(tasks):
            messages.append((self.number(m, which, process), READY))
        return messages


class FactorTask(tarragon.Task):
    """One task; it fires when all its inputs have arrived."""

    def __init__(self, blocks: Blocks, k: int, kind: int, message_count: int) -> None:
        super().__init__()
        self._blocks = blocks
        self._k, self._kind = k, kind
        self._missing = message_count
        self._lower: tarragon.Message | None = None
        self._upper: tarragon.Message | None = None

    def vinit(self) -> None:
        self.state = tarragon.WAIT if self._missing else tarragon.EXEC

    def vinject(self, message: tarragon.Message) -> None:
        if message.key == LOWER:
            self._lower = message
        elif message.key == UPPER:
            self._upper = message
        elif message.key == INVERSE:
            # L needs that of U, and U that of L.
            self._lower = message
        self._missing -= 1
        if not self._missing:
            self.state = tarragon.EXEC

    def vexecute(self) -> None:
        blocks, k = self._blocks, self._k
        width = blocks.analysis.width(k)
        if self._kind == D:
            self._put_all(*blocks.factor(k))
        elif self._kind == L:
            self._put_panel(blocks.lower_panel(k, self._inverse(1, width)), LOWER)
        elif self._kind == U:
            self._put_panel(blocks.upper_panel(k, self._inverse(0, width)), UPPER)
        else:
            assert self._lower is not None
            assert self._upper is not None
            lower = self._lower.array().reshape(-1, width)
            upper = self._upper.array().reshape(width, -1)
            blocks.update(k, lower, upper)
            for edge in self.dependencies:
                edge.put(tarragon.Message(0, READY))
        self._lower = self._upper = None
        self.state = tarragon.DONE

    def _inverse(self, which: int, width: int) -> Block:
        assert self._lower is not None
        block: Block = self._lower.array().reshape(2, width, width)[which]
        return block

    def _put_all(self, lower: Block, upper: Block) -> None:
        """Both inverses to every task L and U: one message on edges with one tag."""
        if self.dependencies:
            message = tarragon.Message(2 * lower.nbytes, INVERSE)
            both = message.array().reshape(2, *lower.shape)
            both[0], both[1] = lower, upper
            self.dependencies[0].put(message)

    def _put_panel(self, panel: Block, key: int) -> None:
        if self.dependencies:
            self.dependencies[0].put(tarragon.Message.of(panel, key))

    def describe(self) -> str:
        return f"{KINDS[self._kind]} of step {self._k} waits for {self._missing} messages"


class Factorization:
    """The graph of one factorization, on this process."""

    def __init__(self, comm: Any, blocks: Blocks, config: tarragon.Config) -> None:
        self._runtime = tarragon.Tarragon(comm, config)
        self._blocks = blocks
        self._plan = Plan(blocks.analysis, blocks.mesh)
        self._wavefront = config.priority == "wavefront"
        self.tasks = 0
        self.init_time = self.exec_time = 0.0

    @property
    def times(self) -> list[Any]:
        """The times of each worker."""
        return self._runtime.times

    def run(self) -> None:
        """Build the graph and run it."""
        plan, process = self._plan, self._runtime.id
        count = plan.analysis.count
        own = [
            plan.number(k, kind, process)
            for k in range(count)
            for kind in range(4)
            if plan.exists(k, kind, process)
        ]
        self.tasks = len(own)
        message_counts = dict.fromkeys(own, 0)
        for number in own:
            k, kind, _ = plan.task(number)
            message_counts[number] += (0, 1, 1, 2)[kind]
            if kind == LU:
                for target, _ in plan.targets(k, kind, process):
                    message_counts[target] += 1
        graph: tarragon.SparseVectorGraph[FactorTask] = tarragon.SparseVectorGraph(
            self._runtime,
            lambda number: self._task(number, message_counts[number]),
            tarragon.IdentityMap(count * plan.each),
            _ByProcess(plan),
        )
        for number in own:
            task = graph.add(number)
            k, kind, _ = plan.task(number)
            size = self._largest(k, kind)
            for target, key in plan.targets(k, kind, process):
                # The edges of D, L and U carry the same payload; those of LU carry none.
                task.connect(target, max_size=size, tag=None if key == READY else 1)
        visitors = []
        if self._wavefront:
            # Earlier steps first, and within a step the tasks that others wait for.
            visitors.append(tarragon.PriorityVisitor(self._urgency))
        self._runtime.graph_init(graph, visitors)
        self._runtime.graph_execute(graph)
        self.init_time, self.exec_time = self._runtime.init_time, self._runtime.exec_time

    def close(self) -> None:
        """Free the communicator."""
        self._runtime.finalize()

    def _urgency(self, number: int) -> int:
        step, kind, _ = self._plan.task(number)
        return -4 * step - kind

    def _task(self, number: int, message_count: int) -> FactorTask:
        k, kind, _ = self._plan.task(number)
        return FactorTask(self._blocks, k, kind, message_count)

    def _largest(self, k: int, kind: int) -> int:
        width = self._blocks.analysis.width(k)
        if kind == D:
            return 16 * width * width
        if kind == L:
            return 8 * width * self._blocks.height(k)
        if kind == U:
            return 8 * width * self._blocks.length(k)
        return 0


class _ByProcess:
    """The distribution of the tasks: the process is part of their number."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def locate(self, task: int) -> int:
        return self._plan.owner(task)

    def tasks(self, process: int) -> list[int]:
        plan = self._plan
        return [
            plan.number(k, kind, process)
            for k in range(plan.analysis.count)
            for kind in range(4)
            if plan.exists(k, kind, process)
        ]
