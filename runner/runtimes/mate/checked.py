"""A checked job: its ranks record what their regions touch (:mod:`runner.runtimes.check`).

One worker runs all ranks by the Python core, so that regions are Python functions, and each of them
runs alone. The order of ranks and regions is that of a seed.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable
from random import Random
from typing import Any

from runner.runtimes.check.array import plain, read
from runner.runtimes.check.findings import GraphInfo, RegionInfo
from runner.runtimes.check.journal import (
    BODY,
    FINISH,
    MESSAGE,
    ROOT,
    START,
    Journal,
    Label,
    Piece,
    Token,
    TooLong,
)
from runner.runtimes.check.numba_calls import catch_numba_calls
from runner.runtimes.check.report import close
from runner.runtimes.check.variables import watched_variables
from runner.runtimes.check.wanted import schedule_seed
from runner.runtimes.check.watch import unwatched
from runner.runtimes.mate.collectives import LOCAL, CollectiveCall, CollectiveCalls
from runner.runtimes.mate.config import Config
from runner.runtimes.mate.context import Context
from runner.runtimes.mate.errors import MateError
from runner.runtimes.mate.graph import Graph
from runner.runtimes.mate.log import EventLog
from runner.runtimes.mate.rank_position import Place
from runner.runtimes.mate.scheduler_interface import SchedulingCore
from runner.runtimes.mate.task import RankGraph, RegionNode, Request, Route, Task


class Checker:
    """The journal of a process's ranks."""

    def __init__(self, tasks: list[Task]) -> None:
        self.journal = Journal()
        self._tasks = tasks
        self.graphs: list[Graph] = []
        self._functions: dict[tuple[int, int], Callable[..., Any]] = {}
        self._finishes: dict[tuple[int, int, int, int], int] = {}
        """Graph, region, local rank, execution -> the piece of its finish."""
        self._messages: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        """Graph, region, local rank -> the messages of the running execution."""
        self._pieces: dict[int, Piece] = {}
        """Request (by id) -> its piece."""
        self._requests: list[Request] = []
        self._waiting: list[Piece | None] = [None for _ in tasks]
        """The piece of a rank that begins once a collective operation is over."""
        self._counts: dict[tuple[Any, ...], int] = defaultdict(int)
        self._free: list[list[int]] = [[] for _ in tasks]
        """Chains of messages outside of graphs whose message is complete."""
        self._slots = [0 for _ in tasks]
        self.current = [self._add(("root", t.local), ROOT, t.local, []) for t in tasks]
        """What each rank does now."""
        catch_numba_calls()

    def _add(
        self, chain: Token, kind: str, rank: int, before: Iterable[int], label: Any = None
    ) -> Piece:
        try:
            return self.journal.add(chain, kind, rank, before, label)
        except TooLong:
            raise MateError(
                "this run is too long for a check: take fewer ranks, iterations or messages",
                code="mate.check",
            ) from None

    def number(self, graph: Graph) -> int:
        """The number of a graph."""
        if graph not in self.graphs:
            self.graphs.append(graph)
        return self.graphs.index(graph)

    # Ranks and regions.

    def next_piece(self, rank: int, before: Iterable[int] = ()) -> Piece:
        """End what the rank does now; it goes on with a new piece."""
        piece = self.current[rank]
        self._store(piece)
        chain = ("root", rank) if piece.label is None else ("region", *piece.label[:3])
        following = self._add(chain, piece.kind, rank, before, piece.label)
        self.current[rank] = following
        return following

    def _store(self, piece: Piece) -> None:
        for block, runs in self.journal.memory.take().items():
            piece.runs[block] = runs

    def begin(self, part: CheckedPart, node: RegionNode) -> None:
        """A region starts."""
        rank, graph = part.task.local, self.number(part.graph)
        label = Label(graph, node.index, rank, node.done, -1)
        chain = ("region", *label[:3])
        start = self._add(chain, START, rank, [part.entry], label)
        for number, edge in enumerate(part.graph.edges()):
            if edge.target != node.index:
                continue
            for other in part.task.neighbors if edge.neighbors else (rank,):
                key = graph, edge.source, other, node.done - edge.delay
                if key in self._finishes:
                    start.declared.append((graph, number, self._finishes[key]))
        self.current[rank] = self._add(chain, BODY, rank, [], label)

    def run(self, node: RegionNode, body: Callable[..., Any], state: Any, i: int) -> Any:
        """Call a region's function on the watched state."""
        rank = node.part.task.local
        piece = self.current[rank]
        assert piece.label is not None
        piece.label = piece.label._replace(iteration=i)
        function = _function(body, state)
        self._functions[piece.label[:2]] = function
        watched = state if isinstance(state, Place) else self.journal.watch.state(state)
        memory = self.journal.memory
        if node.is_async:
            return self._awaited(rank, function, body(watched, i))
        memory.is_recording = True
        try:
            with watched_variables(function, self.journal.watch):
                body(watched, i)
        finally:
            memory.is_recording = False

    async def _awaited(self, rank: int, function: Any, body: Any) -> None:
        await self._wait(rank, function, body)

    @types.coroutine
    def _wait(self, rank: int, function: Any, body: Any) -> Generator[Any, None, None]:
        memory = self.journal.memory
        while True:
            if (piece := self._waiting[rank]) is not None:
                self.journal.stamp(piece)
                self._waiting[rank] = None
            memory.is_recording = True
            try:
                with watched_variables(function, self.journal.watch):
                    value = body.send(None)
            except StopIteration:
                return
            finally:
                memory.is_recording = False
            self._store(self.current[rank])
            yield value

    def end(self, node: RegionNode) -> None:
        """A region's function has returned."""
        self._store(self.current[node.part.task.local])

    def finish(self, part: CheckedPart, node: RegionNode) -> None:
        """A region has finished."""
        key = self.number(part.graph), node.index, part.task.local
        label = Label(*key, node.done, -1)
        piece = self._add(("region", *key), FINISH, key[2], self._messages.pop(key, ()), label)
        self._finishes[*key, node.done] = piece.number
        part.ends.append(piece.number)

    def leave(self, part: CheckedPart) -> None:
        """A rank leaves a graph."""
        rank = part.task.local
        before = [*part.ends, part.entry]
        part.ends.clear()
        self.current[rank] = self._add(("root", rank), ROOT, rank, before)

    # Messages.

    def watch_context(self, context: Context) -> None:
        """Let a rank's operations be recorded."""
        own: Any = context
        own._start = functools.partial(self._start, context._start, context._task)
        own.waitall = functools.partial(self._waitall, context.waitall, context._task)
        # Times would differ from run to run, and so would arrays that hold them.
        own.seconds = own.cpu_seconds = lambda: 0.0

    def _start(
        self, start: Callable[..., Request], task: Task, route: Route, data: Any, status: Any
    ) -> Request:
        rank, incoming = task.local, route.incoming
        poster = self.current[rank]
        pair = (route.peer, task.rank) if incoming else (task.rank, route.peer)
        count = self._counts[incoming, *pair, route.tag]
        self._counts[incoming, *pair, route.tag] += 1
        token = ("message", *pair, route.tag, count)
        label = poster.label
        slot = -1
        if label is None:
            slot = self._free[rank].pop() if self._free[rank] else self._slots[rank]
            self._slots[rank] = max(self._slots[rank], slot + 1)
            chain: Token = ("root message", rank, slot)
        else:
            own = self._messages[label[:3]]
            chain = ("message", *label[:3], len(own))
        self.next_piece(rank)
        piece = self._add(chain, MESSAGE, rank, [poster.number], label)
        if label is not None:
            own.append(piece.number)
        if incoming:
            piece.needs.append(token)
        else:
            poster.gives.append(token)
        buffer = plain(data[0] if isinstance(data, list) else data)
        memory = self.journal.memory
        piece.runs = memory.apart(lambda: memory.record_access(buffer, ..., incoming))
        request = start(route, plain(data), status)
        self._pieces[id(request)] = piece
        self._requests.append(request)
        self.done(request)
        return request

    def done(self, request: Request) -> None:
        """A message may be complete."""
        piece = self._pieces.get(id(request))
        if piece is not None and request.done:
            self.journal.stamp(piece)

    def meet(self, rank: int) -> Piece:
        """The rank waits for others; returns the piece that begins then."""
        piece = self._waiting[rank] = self.next_piece(rank)
        return piece

    async def _waitall(
        self, waitall: Callable[..., Any], task: Task, requests: Iterable[Request]
    ) -> None:
        own = list(requests)
        await waitall(own)
        pieces = [self._pieces[id(r)].number for r in own if id(r) in self._pieces]
        if pieces:
            self.next_piece(task.local, pieces)

    def close(self, comm: Any) -> None:
        """Judge the job.  Collective."""
        close(
            self.journal,
            [self._info(number, graph) for number, graph in enumerate(self.graphs)],
            [list(task.neighbors) for task in self._tasks],
            comm,
        )

    def _info(self, number: int, graph: Graph) -> GraphInfo:
        regions = []
        for region in graph.regions:
            function = self._functions.get((number, region.index), region.body)
            code = inspect.unwrap(function).__code__
            regions.append(RegionInfo(region.name, code.co_filename, code.co_firstlineno))
        texts = [str(d) for region in graph.regions for d in region.depends]
        edges = graph.edges()
        return GraphInfo(
            graph.name,
            regions,
            [
                (e.target, e.source, e.delay, e.neighbors, text)
                for e, text in zip(edges, texts, strict=True)
            ],
        )


class CheckedPart(RankGraph):
    """A rank's part of a graph that tells its checker."""

    __slots__ = ("checker", "ends", "entry")

    checker: Checker
    entry: int
    """The piece in which the rank entered the graph."""
    ends: list[int]
    """The regions that have finished since then."""

    def enter(self, count: int, lazy: bool) -> None:
        self.entry = self.checker.current[self.task.local].number
        super().enter(count, lazy)

    def take(self) -> RegionNode | None:
        node = super().take()
        if node is not None:
            self.checker.begin(self, node)
        return node

    def end_body(self, node: RegionNode, wake: Callable[..., None]) -> None:
        self.checker.end(node)
        super().end_body(node, wake)

    def finish(self, node: RegionNode, wake: Callable[..., None]) -> None:
        self.checker.finish(self, node)
        super().finish(node, wake)

    def over(self) -> bool:
        is_over = super().over()
        if is_over:
            self.checker.leave(self)
        return is_over


class CheckLog(EventLog):
    """Gives the ranks the parts that are checked, instead of events."""

    def __init__(self, checker: Checker) -> None:
        super().__init__()
        self._checker = checker

    def part(self, graph: Graph, task: Task, random: object) -> RankGraph:
        part = CheckedPart(graph, task, random if isinstance(random, Random) else None)
        part.checker, part.ends, part.entry = self._checker, [], -1
        for node in part.nodes:
            node.body = functools.partial(self._checker.run, node, node.body)
        return part

    def request_done(self, request: Request) -> None:
        self._checker.done(request)


class CheckedCalls(CollectiveCalls):
    """Collective operations that order the ranks."""

    def __init__(self, scheduler: SchedulingCore, checker: Checker, process: int) -> None:
        super().__init__(scheduler)
        self._checker, self._process = checker, process

    def join(self, task: Task, scope: int, kind: str, operand: Any) -> tuple[CollectiveCall, bool]:
        checker = self._checker
        number = task.sequence[scope]
        name, _, root = kind.rstrip(")").partition("(")
        token = ("collective", self._process if scope == LOCAL else -1, number)
        here = task.local if scope == LOCAL else task.rank
        is_root = not root or here == int(root)
        first = operand[0] if isinstance(operand, tuple) and name == "reduce" else operand
        if name != "local_bcast":
            read(first)
        checker.current[task.local].gives += [token, (*token, "root")] if is_root else [token]
        following = checker.meet(task.local)
        if name in ("bcast", "local_bcast", "scatter"):
            following.needs.append((*token, "root"))
        elif is_root:
            following.needs.append(token)
        if name == "reduce" and is_root and isinstance(operand, tuple) and operand[1] is not None:
            checker.journal.memory.record_access(plain(operand[1]), ..., True)
        return super().join(task, scope, kind, unwatched(operand))


def checked_config(config: Config) -> Config:
    """One worker, the Python core, and the schedule of the seed."""
    return dataclasses.replace(
        config, workers=1, core="python", steal="process", schedule_seed=schedule_seed()
    )


def _function(body: Callable[..., Any], state: Any) -> Callable[..., Any]:
    """The program's own function of a region, if the translator has put another around it."""
    if body.__module__.startswith("runner.runtimes.mate."):
        bodies = getattr(state, "_mate_bodies", None)
        cells = getattr(body, "__closure__", None) or ()
        if bodies and cells and isinstance(cells[0].cell_contents, int):
            return bodies[cells[0].cell_contents]  # type: ignore[no-any-return]
    return body
