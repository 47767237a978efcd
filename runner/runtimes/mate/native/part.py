"""A rank's part of a graph on the compiled core, for Python code."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from runner.runtimes.core.memory import Part
from runner.runtimes.core.words import NODE, RAN_TO_END
from runner.runtimes.mate.graph import Graph
from runner.runtimes.mate.task import Task

if TYPE_CHECKING:
    from runner.runtimes.mate.compiled import Block


class NativeNode:
    """One region of one rank, for Python code."""

    __slots__ = (
        "address",
        "body",
        "completion_count",
        "index",
        "is_async",
        "message_count",
        "part",
        "runs",
    )

    def __init__(self, part: NativePart, index: int, address: int) -> None:
        region = part.graph.regions[index]
        self.part = part
        self.index = index
        self.address = address
        self.body = region.body
        self.is_async = region.is_async
        self.message_count = 0
        """Messages that Python code has started in the running execution."""
        self.completion_count = 0
        """Number of these that completed before its function returned."""
        self.runs = False
        """True if its function may run; then completions are counted here, without compiled code.

        It changes with the scheduler's lock held if there are messages.
        """

    def begin(self) -> None:
        """Its function is called."""
        self.message_count = self.completion_count = 0
        self.runs = True

    def end(self, lock: threading.Lock) -> int:
        """Its function has returned; returns the answer for compiled code (see
        :mod:`runner.runtimes.core.words`).

        From now on compiled code counts the completions.
        """
        if not self.message_count:
            return RAN_TO_END
        with lock:
            self.runs = False
            return RAN_TO_END + (self.message_count + (self.completion_count << 32)) * 4


class NativePart:
    """One rank's part of a graph."""

    __slots__ = (
        "block",
        "graph",
        "links",
        "nodes",
        "old_block",
        "record",
        "shared",
        "state",
        "task",
    )

    def __init__(self, graph: Graph, task: Task, record: Part) -> None:
        self.graph = graph
        self.task = task
        self.record = record
        self.nodes = [NativeNode(self, n, a) for n, a in enumerate(record.nodes)]
        self.state: Any = None
        self.block: Block | None = None
        """The state in the view of compiled regions."""
        self.old_block: Block | None = None
        self.shared: tuple[Block, int] | None = None
        """The block whose regions guests may run, and its number of loads at that time."""
        self.links: list[tuple[NativeNode, NativeNode, int]] = []
        """Target, source and lead of each dependency."""

    def done(self, node: NativeNode) -> int:
        """Number of finished executions of a region."""
        return self.record.get(node.address + NODE.done)

    def describe(self) -> str:
        """What the regions of a stuck rank wait for."""
        get = self.record.get
        waits, under_way = [], []
        for node in self.nodes:
            name = self.graph.regions[node.index].name
            if get(node.address + NODE.pending) > 0:
                under_way.append(f"{name} waits for its messages")
            elif get(node.address + NODE.remaining):
                waits.append(self._why(node, name))
        return f"graph {self.graph.name}: " + "; ".join(waits + under_way)

    def _why(self, node: NativeNode, name: str) -> str:
        execution = self.done(node)
        missing = [
            f"{self.graph.regions[source.index].name} of local rank {source.part.task.local} "
            f"(finished {source.part.done(source)} times, needed {execution + lead})"
            for target, source, lead in self.links
            if target is node and source.part.done(source) < execution + lead
        ]
        return f"{name} (execution {execution}) waits for {', '.join(missing)}"
