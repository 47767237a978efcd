"""The runtime of a process: it runs the spawned tasks step by step.

A step of a task is a region of the compiled core (:mod:`runner.runtimes.core`), with its own stack
if it waits for messages. A step waits for dependencies between regions, so no thread waits at a
barrier: the tasks of a process wait for one task that counts them (``sinc``), which for a global
barrier talks to those of the other processes.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from runner.runtimes.core.core import Core, Options
from runner.runtimes.core.words import DEADLOCK, FAIL, RAISED, RANK, RESUME, YIELDED
from runner.runtimes.mate.compiled.tasks import Tasks, failure, message_table
from runner.runtimes.tpod.config import Config, thread_level
from runner.runtimes.tpod.errors import ConfigError, Deadlock, TaskError, TpodError
from runner.runtimes.tpod.task import GlobalSinc, Partner, Sinc, Task, global_partners
from runner.runtimes.workers import affinity
from runner.runtimes.workers.core_threads import CoreThreads
from runner.runtimes.workers.failure import end_job
from runner.runtimes.workers.thread_level import require_level
from runner.runtimes.workers.timers import WorkerTimes

_OPENING = 65536
"""Bytes of the message that opens a connection."""


class Tpod:
    """The runtime; ``comm`` is None for one process without MPI.

    ``exec_time``: seconds of the last :meth:`run`. ``messages`` and ``bytes``: sent to other
    processes in it. ``task_waiting``: seconds that its tasks waited for messages, summed over the
    tasks; others run meanwhile.
    """

    def __init__(self, comm: Any = None, config: Config | None = None) -> None:
        self.config = config or Config()
        self.comm = None if comm is None else comm.Dup()
        self.size = 1 if comm is None else comm.size
        self.id = 0 if comm is None else comm.rank
        self.exec_time = self.init_time = 0.0
        self.messages = self.bytes = 0
        self.task_waiting = 0.0
        self.times: list[WorkerTimes] = []
        """The times of each worker in the last run."""
        self._tasks: list[Task] = []
        self._masks, self._number = affinity.masks_on_node(self.comm)
        affinity.check_affinity(
            self.config.workers, self._masks[self._number], self.config.pinning, ConfigError
        )
        if comm is not None:
            level = thread_level(self.config)
            require_level(level, f"--thread-level {level}", ConfigError)

    def spawn(self, task: Task) -> int:
        """Add a task; returns its number, which identifies it to others."""
        self._tasks.append(task)
        return len(self._tasks) - 1

    def run(self, steps: int, order: Sequence[int] | None = None) -> None:
        """Run all tasks through the steps.  Collective.

        ``order``: the numbers of the tasks in the order in which they start a step; by default the
        order of spawning. Raises :class:`TaskError` for a partner that does not exist, and
        :class:`Deadlock`; with several processes a failure ends the job.
        """
        begin = perf_counter()
        job = _Job(self, steps, list(range(len(self._tasks))) if order is None else list(order))
        if self.comm is not None:
            self.comm.Barrier()
        self.init_time = perf_counter() - begin
        begin = perf_counter()
        job.run()
        self.exec_time = perf_counter() - begin
        self.times = job.threads.times()
        self.messages = sum(times.messages for times in self.times)
        self.bytes = sum(times.bytes for times in self.times)
        self.task_waiting = job.waiting_seconds()
        if job.failure is not None:
            task, error = job.failure
            tpod_error = error
            if not isinstance(tpod_error, TpodError):
                who = "the runtime" if task is None else f"task {task}"
                tpod_error = TpodError(
                    f"{who} failed: {type(error).__name__}: {error}", code="tpod.task_failed"
                )
            end_job(self.comm, "tpod", tpod_error, error)

    def finalize(self) -> None:
        """Free the communicator. Collective."""
        if self.comm is not None:
            self.comm.Free()


class _Job:
    """One run of the tasks of a process."""

    def __init__(self, runtime: Tpod, steps: int, order: list[int]) -> None:
        self._comm = runtime.comm if runtime.size > 1 else None
        self._config = config = runtime.config
        self._steps = steps
        self._process = runtime.id
        self.failure: tuple[int | None, BaseException] | None = None
        self._lock = threading.Lock()
        self._tasks = list(runtime._tasks)
        if sorted(order) != list(range(len(self._tasks))):
            raise TaskError("the order of the tasks must name each of them once", code="tpod.graph")
        if config.barrier != "neighbours":
            order.append(len(self._tasks))
            self._tasks.append(self._sinc(runtime.size))
        self._order = order
        """The task at each place among the core's ranks."""
        self._places = {number: place for place, number in enumerate(order)}
        masks = runtime._masks
        cpus = affinity.cpu_places(config.workers, config.pinning, masks, runtime._number)
        self._core = Core(
            order,
            config.workers,
            self._call,
            self._body,
            Options(
                spin_s=config.idle_spin_us * 1e-6,
                sleep_s=config.idle_sleep_us * 1e-6,
                crowded=affinity.is_crowded(config.workers, masks),
                stealing=config.queue != "private",
                remote=runtime.size > len(masks),
                seed=config.schedule_seed,
                log=False,
                ordered=config.queue != "stealing",
                patience=config.polls,
                funneled=config.is_funneled,
            ),
        )
        self.threads = CoreThreads(
            self._core, cpus, TpodError, lambda error: self._fail(None, error)
        )
        self._set_places()
        self._bind(runtime.size)
        for number, task in enumerate(self._tasks):
            self._link(number, task)

    def _sinc(self, processes: int) -> Task:
        if self._config.barrier == "process" or self._comm is None:
            return Sinc()
        place = len(self._tasks)
        counts = self._comm.allgather(place)
        if len(set(counts)) > 1:
            raise TaskError(
                f"--barrier global: the processes have {counts} tasks, not as many",
                code="tpod.graph",
            )
        return GlobalSinc(global_partners(self._process, processes, place))

    def _set_places(self) -> None:
        memory, core = self._core.memory, self._core
        for place, rank in enumerate(core.ranks):
            # In the given order, whenever several are ready.
            memory.put(rank + RANK.priority, len(core.ranks) - place)
            if self._config.queue == "shared":
                core.set_home(place, 0)
            else:
                core.set_home(place, place % self._config.workers)

    def _bind(self, processes: int) -> None:
        orders = [self._order] if self._comm is None else self._comm.allgather(self._order)
        numbers: dict[Partner, int] = {}
        locations: list[tuple[int, int]] = []
        for process, order in enumerate(orders):
            for place, number in enumerate(order):
                numbers[process, number] = len(locations)
                locations.append((process, place))
        if self._comm is not None:
            most = max(map(len, orders))
            is_serialized = self._config.thread_level == "serialized"
            top = max((task.top for task in self._tasks), default=0)
            top = max(self._comm.allgather(top))
            self._core.messages(message_table(self._comm, most, is_serialized, top), locations)
            self._open()
        self._bound = Tasks(self._core, self._process, processes, len(locations))
        for number in self._order:
            task = self._tasks[number]
            for partner in task.partners:
                if partner not in numbers:
                    raise TaskError(
                        f"task {number} has a partner that does not exist: task {partner[1]} of "
                        f"process {partner[0]}",
                        code="tpod.graph",
                    )
            peer_numbers = [numbers[partner] for partner in task.partners]
            task.peers = np.array(peer_numbers, np.int64)
            self._bound.bind(numbers[self._process, number], task, [0])

    def _open(self) -> None:
        """Exchange a message with each process that tasks of this one talk to."""
        assert self._comm is not None
        partners = {process for task in self._tasks for process, _ in task.partners}
        # A process may be named by one that it does not name itself.
        flags = self._comm.alltoall([process in partners for process in range(self._comm.size)])
        others = [n for n, by in enumerate(flags) if (by or n in partners) and n != self._process]
        came = np.zeros(_OPENING, np.uint8)
        requests = [self._comm.Irecv(came.copy(), process) for process in others]
        requests += [self._comm.Isend(came, process) for process in others]
        for request in requests:
            request.Wait()

    def _link(self, number: int, task: Task) -> None:
        link, own = self._core.link, self._node(number)
        for other in task.same:
            link(own, self._node(other), 1)
        sinc = None if self._config.barrier == "neighbours" else len(self._tasks) - 1
        if number == sinc:
            return
        if sinc is None:
            for other in task.after:
                link(own, self._node(other), 0)
        else:
            link(own, self._node(sinc), 0)
            link(self._node(sinc), own, 1)

    def _node(self, number: int) -> int:
        return self._bound.parts[self._places[number]].nodes[-1]

    # Running.

    def run(self) -> None:
        """Run until all tasks have ended."""
        if self._config.workers == 1:
            self.threads.run_in_caller()
        else:
            self.threads.run(is_caller_first=self._config.is_funneled)
        self._core.close()

    def waiting_seconds(self) -> float:
        """Seconds that tasks waited for messages, summed."""
        memory, ranks = self._core.memory, self._core.ranks
        return sum(memory.get_real(rank + RANK.waited) for rank in ranks)

    def _call(self, kind: int, a: int, b: int) -> int:
        task: int | None = None
        try:
            if kind == RESUME:
                task = self._order[b]
                return self._bound.turn(a, b, self._steps)
            if kind == DEADLOCK:
                raise self._deadlock()
            if kind == FAIL:
                raise failure(self._core, b)
        except BaseException as error:
            self._fail(task, error)
            return RAISED
        return YIELDED

    def _body(self, worker: int, number: int, iteration: int) -> int:
        raise AssertionError("tasks are compiled")

    def _deadlock(self) -> Deadlock:
        return Deadlock(
            [
                f"task {number}: step {step} of {self._steps}"
                for place, number in enumerate(self._order)
                if (step := self._bound.step_count(place)) < self._steps
            ]
        )

    def _fail(self, task: int | None, error: BaseException) -> None:
        with self._lock:
            if self.failure is None:
                self.failure = task, error
                self._core.stop()
