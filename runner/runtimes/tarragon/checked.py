"""A checked graph of compiled tasks: each step is a Python function that records what it touches.

The tasks of a process run one at a time, in the order of a seed, by the rules of
:class:`runner.runtimes.tarragon.compiled.Steps`: a step needs its messages, and a buffer is written
again two messages later.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Any

from runner.runtimes.check.findings import GraphInfo, RegionInfo
from runner.runtimes.check.journal import (
    BODY,
    FINISH,
    MESSAGE,
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
from runner.runtimes.mate.rank_position import Place
from runner.runtimes.tarragon.compiled import CompiledTask, Edges
from runner.runtimes.tarragon.errors import Deadlock, GraphError, TarragonError
from runner.runtimes.tarragon.graph import DONE, Task
from runner.runtimes.workers.timers import WorkerTimes

_PAUSE_S = 1e-4
_TAGS = 32767


class CheckedTasks(Edges):
    """The tasks of a process while their graph is checked; takes the place of an engine."""

    transport = None

    def __init__(self, tasks: Sequence[CompiledTask], comm: Any) -> None:
        super().__init__(tasks, comm)
        self.tasks: list[Task] = list(tasks)
        self.failure: tuple[Task | None, BaseException] | None = None
        self._comm = comm
        self._journal = Journal()
        self._wall_s = 0.0
        seed = schedule_seed()
        self._random = None if seed is None else Random(seed)
        self._done = [0 for _ in tasks]
        self._finishes: dict[tuple[int, int], int] = {}
        """Place and step -> the piece of its finish."""
        self._arrivals: dict[tuple[int, int, int], tuple[Any, Piece]] = {}
        """Place, number of the incoming edge, step -> the request of its message."""
        self._departures: dict[tuple[int, int, int], tuple[Any, Piece]] = {}
        """Place, number of the outgoing edge, parity -> the last request."""
        if len(self._numbers) ** 2 > _TAGS:
            raise GraphError(
                f"{len(self._numbers)} tasks are too many for a check: take fewer",
                code="tarragon.graph",
            )
        self._edges = self._all_edges()
        catch_numba_calls()

    def _all_edges(self) -> list[tuple[int, int, int]]:
        """Source, target and delay of the edges within each process."""
        own = [
            (task.id, edge.target, edge.delay)
            for task in self._tasks
            for edge in task.dependencies
            if self._places[edge.target][0] == self._process and edge.target != task.id
        ]
        lists = [own] if self._comm is None else self._comm.allgather(own)
        return sorted({edge for edges in lists for edge in edges})

    def init(self) -> None:
        """Call ``vinit`` of every task."""
        for place, task in enumerate(self._tasks):
            self._settle(place, task)
            task.vinit()
            task.ctx = _Clock(  # type: ignore[assignment]
                rank=self._numbers[task.id],
                local_rank=place,
                size=len(self._numbers),
                local_count=len(self._tasks),
                process=self._process,
                process_count=self._processes,
                workers=1,
            )

    def times(self) -> list[WorkerTimes]:
        """All time as that of one worker."""
        return [WorkerTimes(compute_s=self._wall_s)]

    def run(self) -> None:
        """Run all steps of all tasks, then judge the graph.  Collective."""
        begin = time.perf_counter()
        try:
            for place in range(len(self._tasks)):
                self._post(place, 0)
                self._post(place, 1)
            while any(n < task.steps for n, task in zip(self._done, self._tasks, strict=True)):
                ready = [place for place in range(len(self._tasks)) if self._is_ready(place)]
                if ready:
                    self._step(ready[0] if self._random is None else self._random.choice(ready))
                elif self._arrivals or self._departures:
                    time.sleep(_PAUSE_S)
                else:
                    raise Deadlock([f"task {t.id}" for t in self._tasks])
        except TooLong:
            raise TarragonError(
                "this run is too long for a check: take fewer tasks or steps", code="tarragon.graph"
            ) from None
        for request, _ in self._departures.values():
            request.Wait()
        self._wall_s = time.perf_counter() - begin
        for task in self._tasks:
            task.state = DONE
        everybody = [list(range(len(self._tasks))) for _ in self._tasks]
        close(self._journal, [self._info()], everybody, self._comm)

    # Steps.

    def _is_ready(self, place: int) -> bool:
        task, step, done = self._tasks[place], self._done[place], self._done
        if step >= task.steps:
            return False
        for source, target, delay in self._edges:
            if target == task.id and done[self._places[source][1]] < step + 1 - delay:
                return False
        for edge in task.dependencies:
            process, other = self._places[edge.target]
            own = process == self._process and other != place
            if own and edge.max_size and done[other] < step + edge.delay - 1:
                return False
        arrived = all(
            self._has_come(place, n, step)
            for n, (_, delay, _) in enumerate(self._arriving[place])
            if step >= delay
        )
        return arrived and all(
            self._has_left(place, n, step % 2) for n in range(len(self._leaving[place]))
        )

    def _has_come(self, place: int, number: int, step: int) -> bool:
        request, piece = self._arrivals[place, number, step]
        if not request.Test():
            return False
        self._journal.stamp(piece)
        return True

    def _has_left(self, place: int, number: int, parity: int) -> bool:
        request, _ = self._departures.get((place, number, parity), (None, None))
        return request is None or bool(request.Test())

    def _step(self, place: int) -> None:
        task, step, journal = self._tasks[place], self._done[place], self._journal
        label = Label(0, self._numbers[task.id], place, step, step)
        before = [
            self._arrivals.pop((place, n, step))[1].number
            for n, (_, delay, _) in enumerate(self._arriving[place])
            if step >= delay
        ]
        before += [
            self._departures.pop((place, n, step % 2))[1].number
            for n in range(len(self._leaving[place]))
            if (place, n, step % 2) in self._departures
        ]
        for edge in task.dependencies:
            process, other = self._places[edge.target]
            key = other, step + edge.delay - 2
            if process == self._process and edge.max_size and key in self._finishes:
                before.append(self._finishes[key])
        chain = ("task", place)
        start = journal.add(chain, START, place, before, label)
        for number, (source, target, delay) in enumerate(self._edges):
            key = self._places[source][1], step - delay
            if target == task.id and key in self._finishes:
                start.declared.append((0, number, self._finishes[key]))
        body = journal.add(chain, BODY, place, [], label)
        compute = _compute(task)
        journal.memory.is_recording = True
        try:
            with watched_variables(compute, journal.watch):
                compute(journal.watch.state(task), step)
        finally:
            journal.memory.is_recording = False
        body.runs = journal.memory.take()
        finish = journal.add(chain, FINISH, place, [], label)
        self._finishes[place, step] = finish.number
        self._done[place] += 1
        self._send(place, step, finish)
        self._post(place, step + 2)

    def _post(self, place: int, step: int) -> None:
        """Start to receive the messages of a step: their buffers were used two steps before."""
        task = self._tasks[place]
        if step >= task.steps:
            return
        before = [self._finishes[place, step - 2]] if step >= 2 else []
        for n, (other, delay, buffers) in enumerate(self._arriving[place]):
            if step < delay:
                continue
            number = step - delay
            token = (other, self._numbers[task.id], number)
            piece = self._message(("in", place, n), place, step, before, buffers[number % 2], True)
            piece.needs.append(token)
            process = self._process_of(other)
            tag = other * len(self._numbers) + self._numbers[task.id]
            request = self._comm.Irecv(buffers[number % 2], process, tag)
            self._arrivals[place, n, step] = request, piece

    def _send(self, place: int, step: int, finish: Piece) -> None:
        """Start to send the messages of a step."""
        task = self._tasks[place]
        own = self._numbers[task.id]
        for n, (other, delay, buffers) in enumerate(self._leaving[place]):
            if step + delay >= task.steps:
                continue
            finish.gives.append((own, other, step))
            buffer = buffers[step % 2]
            piece = self._message(("out", place, n), place, step, [finish.number], buffer, False)
            tag = own * len(self._numbers) + other
            request = self._comm.Isend(buffer, self._process_of(other), tag)
            self._departures[place, n, step % 2] = request, piece

    def _message(
        self, chain: Token, place: int, step: int, before: list[int], buffer: Any, incoming: bool
    ) -> Piece:
        label = Label(0, self._numbers[self._tasks[place].id], place, step, step)
        piece = self._journal.add(chain, MESSAGE, place, before, label)
        memory = self._journal.memory
        piece.runs = memory.apart(lambda: memory.record_access(buffer, ..., incoming))
        return piece

    def _process_of(self, number: int) -> int:
        return list(self._places.values())[number][0]

    # The graph.

    def _info(self) -> GraphInfo:
        own = {}
        for task in self._tasks:
            code = _compute(task).__code__
            own[self._numbers[task.id]] = RegionInfo(
                f"task {task.id}", code.co_filename, code.co_firstlineno
            )
        parts = [own] if self._comm is None else self._comm.allgather(own)
        regions = {number: info for part in parts for number, info in part.items()}
        numbers = self._numbers
        return GraphInfo(
            type(self._tasks[0]).__name__ if self._tasks else "",
            [regions[number] for number in sorted(regions)],
            [
                (numbers[b], numbers[a], delay, True, f"edge from task {a} (delay {delay})")
                for a, b, delay in self._edges
            ],
            "tarragon",
        )


class _Clock(Place):
    """The context of a step: without times, so that arrays of times do not differ."""

    def seconds(self) -> float:
        return 0.0

    def cpu_seconds(self) -> float:
        return 0.0

    def buffering(self) -> AbstractContextManager[None]:
        return nullcontext()


def _compute(task: CompiledTask) -> Any:
    """The program's own function of a step."""
    return task.regions.regions[-1].body
