"""One execution of a graph on the compiled core (:mod:`runner.runtimes.core`): tasks are its ranks.

A turn of a task injects its arrived messages and, if it may run, executes it. A message within the
process is injected by its sender, unless one of the task's methods is running: then the task
injects it itself.
"""

from __future__ import annotations

import threading
import time
from typing import Any, cast

import numpy as np

from runner.runtimes.core.core import Core, Options
from runner.runtimes.core.words import (
    CORE,
    DEADLOCK,
    FAIL,
    POLL,
    RAISED,
    RAN_TO_END,
    RANK,
    RESUME,
    YIELDED,
)
from runner.runtimes.mate.compiled.tasks import failure
from runner.runtimes.tarragon.compiled import CompiledTask, Steps
from runner.runtimes.tarragon.config import Config
from runner.runtimes.tarragon.errors import ExecutionError, TarragonError
from runner.runtimes.tarragon.graph import DONE, ERROR, EXEC, INIT, STATES, WAIT, Task
from runner.runtimes.tarragon.message import Message
from runner.runtimes.tarragon.quiescence import Rounds
from runner.runtimes.tarragon.transport import Transport
from runner.runtimes.workers.core_threads import CoreThreads
from runner.runtimes.workers.timers import WorkerTimes

_PAUSE_S = 20e-6
"""Pause between two looks of a process whose tasks have all ended."""


class Engine:
    """The tasks of one process while the graph runs."""

    def __init__(
        self,
        tasks: list[Task],
        config: Config,
        cpus: list[int | None],
        is_crowded: bool,
        remote: bool,
        transport: Transport | None,
        rounds: Rounds | None,
        is_compiled: bool = False,
        comm: Any = None,
    ) -> None:
        """``is_compiled``: True if all tasks are; their messages need ``comm`` and no transport."""
        # The core's queues start in this order.
        self.tasks = sorted(tasks, key=lambda task: -task.priority)
        self.places = {task.id: place for place, task in enumerate(self.tasks)}
        self.config = config
        self.transport, self.rounds = transport, rounds
        self.failure: tuple[Task | None, BaseException] | None = None
        self._lock = threading.Lock()
        self._quiet = False
        """True if nothing runs and nothing is under way anywhere."""
        self._vinit = True
        self.core = Core(
            [task.id for task in self.tasks],
            config.workers,
            self._call,
            self._body,
            Options(
                spin_s=config.idle_spin_us * 1e-6,
                sleep_s=config.idle_sleep_us * 1e-6,
                crowded=is_crowded,
                stealing=config.queue != "private",
                remote=remote,
                seed=config.schedule_seed,
                log=False,
                ordered=config.priority != "none",
                service=config.threads == "service" and (comm is not None or transport is not None),
            ),
        )
        self._threads = CoreThreads(
            self.core, cpus, TarragonError, lambda error: self.fail(None, error)
        )
        for place, task in enumerate(self.tasks):
            rank = self.core.ranks[place]
            self.core.memory.put(rank + RANK.priority, task.priority)
            if config.queue == "shared":
                self.core.set_home(place, 0)
            elif task.affinity is not None:
                self.core.set_home(place, task.affinity % config.workers)
        if transport is not None:
            # Receives from other processes are always under way.
            self.core.set_word(CORE.outside, 1)
        self.steps: Steps | None = None
        if is_compiled:
            level = config.thread_level == "serialized"
            self.steps = Steps(self.core, cast(list[CompiledTask], self.tasks), comm, level)

    def init(self) -> None:
        """Call ``vinit`` of every task, and inject the messages that they send each other."""
        for task in self.tasks:
            if task.state == INIT:
                task.vinit()
        self._vinit = False
        for task in self.tasks:
            self._inject(task, self.core.ranks[self.places[task.id]])

    def run(self) -> None:
        """Run until no task can run any more on any process."""
        if self.config.is_single_threaded:
            self._threads.run_in_caller()
        else:
            self._threads.run()
        while self.rounds is not None and not self._quiet and self.failure is None:
            # All tasks have ended; the other processes may still be running.
            self._poll(is_over=True)
            time.sleep(_PAUSE_S)
        self.core.close()

    def times(self) -> list[WorkerTimes]:
        """The times of each worker."""
        return self._threads.times()

    # Messages.

    def deliver(self, message: Message, targets: list[int]) -> None:
        """Pass a message to tasks of this process."""
        for target in targets:
            place = self.places.get(target)
            if place is None:
                raise ExecutionError(
                    f"task {message.source} sends to task {target}, which was not added", target
                )
            task = self.tasks[place]
            if task.state == DONE:
                raise ExecutionError(
                    f"task {target} has ended, and a message of task {message.source} arrives: a "
                    "task that gets messages must not be DONE yet",
                    target,
                )
            task.mail.append(message)
            if not self._vinit:
                self._inject(task, self.core.ranks[place])

    def _inject(self, task: Task, rank: int) -> None:
        """Inject arrived messages, unless a method of the task runs: it then does so itself."""
        while task.mail:
            if not task.lock.acquire(blocking=False):
                return
            try:
                before = task.state
                self._open(task)
                fires = task.state == EXEC and before != EXEC
            finally:
                task.lock.release()
            if fires:
                self.core.wake(rank)

    def _open(self, task: Task) -> None:
        while task.mail:
            message = task.mail.popleft()
            if message.foreign and message.content is None:
                message.content = task.vcreate(message.array(np.uint8))
            task.vinject(message)

    # Functions called by the core, on the thread of a worker.

    def _call(self, kind: int, a: int, b: int) -> int:
        try:
            if kind == RESUME:
                return self._turn(a, b) if self.steps is None else self._step(a, b)
            if kind == POLL:
                self._poll(is_over=False)
            elif kind == DEADLOCK:
                if self.steps is not None:
                    raise self.steps.deadlock()
                self._quiet = True
                self.core.stop()
            elif kind == FAIL:
                raise failure(self.core, b)
        except BaseException as error:
            self.fail(None, error)
            return RAISED
        return YIELDED

    def _body(self, worker: int, number: int, iteration: int) -> int:
        raise AssertionError("tasks are no regions")

    def _turn(self, worker: int, place: int) -> int:
        task = self.tasks[place]
        try:
            with task.lock:
                self._open(task)
                if task.state == EXEC:
                    task.last = worker
                    task.vexecute()
                    self._open(task)
                state = task.state
        except BaseException as error:
            self.fail(task, error)
            return RAISED
        if state == DONE:
            return RAN_TO_END
        if state == WAIT:
            if task.mail:
                self._inject(task, self.core.ranks[place])
        elif state == EXEC:
            self.core.wake(self.core.ranks[place])
        else:
            self.fail(task, ExecutionError(f"its state is {STATES[state]} after a turn", task.id))
            return RAISED
        return YIELDED

    def _step(self, worker: int, place: int) -> int:
        assert self.steps is not None
        try:
            return self.steps.turn(worker, place)
        except BaseException as error:
            self.fail(self.tasks[place], error)
            return RAISED

    def _poll(self, is_over: bool) -> None:
        assert self.transport is not None
        assert self.rounds is not None
        has_news = self.transport.poll(self.deliver)
        if has_news or self._quiet:
            return
        if is_over or self._is_idle():
            changes = self.core.word(CORE.turns)
            if self.rounds.advance(self.transport, changes, is_over=is_over) and not self._quiet:
                self._quiet = True
                self.core.stop()

    def _is_idle(self) -> bool:
        """True if no task runs or is ready; messages may be under way."""
        core = self.core
        if core.word(CORE.idle) != len(core.workers):
            return False
        words = core.memory.words
        return all(words[tail] == words[head] for head, tail in core.queues)

    def fail(self, task: Task | None, error: BaseException) -> None:
        """Keep the first error and stop."""
        with self._lock:
            if self.failure is None:
                self.failure = task, error
                self.core.stop()


def waiting(tasks: list[Task]) -> list[Task]:
    """The tasks that have not ended."""
    return [task for task in tasks if task.state not in (DONE, ERROR)]
