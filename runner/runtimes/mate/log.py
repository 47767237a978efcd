"""The event log of a run, and a checker that proves that the run obeyed its graph.

The checker is independent of the scheduler: it uses only the model's rule (Martin 2018, chapter 3)
and the order of the recorded events. Without a log no code of this file runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

from runner.runtimes.mate.graph import Graph
from runner.runtimes.mate.task import RankGraph, RegionNode, Request, Task


class Event(NamedTuple):
    """An event of one execution of a region; ``rank`` is a local id.

    ``kind``: ``start``; ``body`` (the function has returned; ``posted`` messages were started);
    ``request`` (one of the messages is complete); ``finish`` (the execution has finished).
    """

    kind: str
    time: float
    graph: str
    rank: int
    region: int
    execution: int
    worker: int
    posted: int = 0


class Lapse(NamedTuple):
    """A period of a worker: it ran a rank (global id), or it waited (-1)."""

    worker: int
    rank: int
    begin: float
    end: float


class LoggedPart(RankGraph):
    """A rank's part of a graph that records its events."""

    __slots__ = ("log",)

    log: EventLog

    def take(self) -> RegionNode | None:
        node = super().take()
        if node is not None:
            self.log.add("start", node)
        return node

    def end_body(self, node: RegionNode, wake: Callable[..., None]) -> None:
        self.log.add("body", node, node.message_count)
        super().end_body(node, wake)

    def finish(self, node: RegionNode, wake: Callable[..., None]) -> None:
        self.log.add("finish", node)
        super().finish(node, wake)


class EventLog:
    """The events of one process.

    Events are added under the scheduler's lock, so their order in the list is the order in which
    they took effect. ``is_partial``: recording may end before the run does, when the native core
    has no room left; ``is_cut`` says whether it did; and the native core records no ``request`` and
    no ``finish``. Without it, such a run fails.
    """

    def __init__(self, is_partial: bool = False) -> None:
        self.is_partial = is_partial
        self.is_cut = False
        self.sent: dict[tuple[int, int], tuple[int, int]] = {}
        """Messages and bytes by sender and receiver, global ranks; collectives are left out."""
        self.events: list[Event] = []
        self.lapses: list[Lapse] = []
        self.tasks: list[Task] = []
        self.graphs: dict[str, Graph] = {}

    def part(self, graph: Graph, task: Task, random: object) -> RankGraph:
        """The class that creates the parts of a logged run."""
        self.graphs[graph.name] = graph
        part = LoggedPart(graph, task, random)  # type: ignore[arg-type]
        part.log = self
        return part

    def add(self, kind: str, node: RegionNode, count: int = 0) -> None:
        part = node.part
        self.events.append(
            Event(
                kind,
                perf_counter(),
                part.graph.name,
                part.task.local,
                node.index,
                node.done,
                part.task.worker,
                count,
            )
        )

    def count(self, sender: int, receiver: int, messages: int, sent: int) -> None:
        """Count messages of a rank of this process; only one worker at a time runs a rank."""
        before = self.sent.get((sender, receiver), (0, 0))
        self.sent[sender, receiver] = before[0] + messages, before[1] + sent

    def request_done(self, request: Request) -> None:
        """Record that a message is complete."""
        if request.owner is not None:
            self.add("request", request.owner)

    def neighbors(self) -> list[list[int]]:
        """The registered local neighbours of each local rank."""
        return [list(task.neighbors) for task in self.tasks]

    def check(self) -> list[str]:
        """Violations in this log as text; empty if every graph was obeyed."""
        violations = []
        for name, graph in self.graphs.items():
            events = [e for e in self.events if e.graph == name]
            violations += check_events(graph, events, self.neighbors())
        return violations


@dataclass
class _Execution:
    start: int = -1
    body: int = -1
    finish: int = -1
    posted: int = 0
    requests: int = 0


def check_events(graph: Graph, events: list[Event], neighbors: list[list[int]]) -> list[str]:
    """Violations of the graph in a process's events, as text.

    Each execution of a region is checked. It must start once, after all four kinds of dependencies
    have finished. Executions of a region must follow each other. It must finish after its function
    has returned and after every message that it started is complete.
    """
    executions: dict[tuple[int, int], int] = defaultdict(int)
    open_: dict[tuple[int, int], _Execution] = {}
    violations: list[str] = []
    for position, event in enumerate(events):
        key = (event.rank, event.region)
        what = f"{graph.name}.{graph.regions[event.region].name}[{event.execution}]"
        where = f"{what} of local rank {event.rank}"
        if event.execution != executions[key]:
            violations.append(
                f"{where}: {event.kind} out of turn, finished {executions[key]} executions"
            )
        if event.kind == "start":
            if key in open_:
                violations.append(f"{where} started while the execution before was not finished")
            open_[key] = _Execution(start=position)
            violations += [
                f"{where} started before {e}" for e in _unmet(graph, event, executions, neighbors)
            ]
            continue
        if key not in open_:
            violations.append(f"{where}: {event.kind} without a start")
            continue
        violations += [f"{where} {problem}" for problem in _advance(open_[key], event, position)]
        if event.kind == "finish":
            executions[key] += 1
            del open_[key]
    return violations


def _unmet(
    graph: Graph, event: Event, executions: dict[tuple[int, int], int], neighbors: list[list[int]]
) -> list[str]:
    unmet = []
    for edge in graph.edges():
        if edge.target != event.region:
            continue
        least = event.execution + 1 - edge.delay
        for rank in neighbors[event.rank] if edge.neighbors else [event.rank]:
            if executions[rank, edge.source] < least:
                name = graph.regions[edge.source].name
                unmet.append(f"{name}[{least - 1}] of local rank {rank} had finished")
    return unmet


def _advance(execution: _Execution, event: Event, position: int) -> list[str]:
    if event.kind == "body":
        execution.body, execution.posted = position, event.posted
    elif event.kind == "request":
        execution.requests += 1
    elif event.kind == "finish":
        execution.finish = position
        if execution.body < 0:
            return ["finished before its function returned"]
        if execution.requests != execution.posted:
            return [f"finished with {execution.requests} of {execution.posted} messages complete"]
    return []
