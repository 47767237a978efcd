"""Starts a job, waits for its end, and makes sure that an error ends all processes."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from runner.errors import RunnerError
from runner.runtimes.check import wanted
from runner.runtimes.core.arena import Arena
from runner.runtimes.mate.collectives import CollectiveCalls
from runner.runtimes.mate.config import Config, RankMap
from runner.runtimes.mate.context import Context, Main, Marks, life
from runner.runtimes.mate.errors import ConfigError, GraphError, MateError, RankFailed
from runner.runtimes.mate.log import EventLog
from runner.runtimes.mate.messages import MessageLayer
from runner.runtimes.mate.mpi4py_guard import Guard
from runner.runtimes.mate.report import is_first
from runner.runtimes.mate.scheduler import RankScheduler
from runner.runtimes.mate.task import Task
from runner.runtimes.mate.time_line import write_time_line
from runner.runtimes.mate.transport import Poller, Transport
from runner.runtimes.mate.transport_mpi import MpiTransport
from runner.runtimes.mate.worker import Worker
from runner.runtimes.workers import affinity
from runner.runtimes.workers.thread_level import require_level
from runner.runtimes.workers.timers import Report, Timers

if TYPE_CHECKING:
    from runner.runtimes.mate.native.scheduler import NativeScheduler
    from runner.runtimes.mate.native.worker import NativeWorker

_END_S = 30.0
"""Longest time in seconds that a process waits for the end begun by another one."""
_SWITCH_INTERVAL_S = 1e-3
"""Longest time in seconds that a worker returning from a kernel waits for one in Python code."""


def world(config: Config) -> Any:
    """The world communicator, after MPI_Init with the thread level that the configuration needs.

    Raises :class:`MateError` if MPI is initialised already, or does not grant the level.
    """
    import mpi4py

    mpi4py.rc.thread_level = config.thread_level
    from mpi4py import MPI

    require_level(config.thread_level, f"--thread-level {config.thread_level}", MateError)
    return MPI.COMM_WORLD


def run(
    main: Main,
    config: Config | None = None,
    *args: Any,
    comm: Any = None,
    log: EventLog | None = None,
    transport: Transport | None = None,
    arena: Arena | None = None,
) -> Report:
    """Run ``await main(ctx, *args)`` on every rank of the job; collective over ``comm``.

    Returns when all ranks of all processes have ended. ``arena``: the memory for arrays of states
    that other processes may work on (``config.steal``); created with ``comm``. ``comm=None``: one
    process without MPI. Raises :class:`ConfigError` in all processes if one of them cannot run the
    configuration. Without MPI it raises the error that ends the job: :class:`Deadlock`, a rank's
    :class:`RunnerError`, or :class:`RankFailed` for any other exception of a rank. With MPI these
    errors are printed and the job is aborted.
    """
    config = config or Config()
    if config.time_line is not None:
        log = log or EventLog(is_partial=True)
    if comm is None:
        return _finished(_Job(main, config, args, transport or Transport(), log, None), log)
    _agree(comm, config, arena)
    layer = transport or MpiTransport(comm, config.thread_level == "serialized", config.in_process)
    try:
        return _finished(_Job(main, config, args, layer, log, comm, arena), log)
    finally:
        if isinstance(layer, MpiTransport):
            layer.close()


def _finished(job: _Job, log: EventLog | None) -> Report:
    """Run a job, and write its time line if the configuration names a file for it."""
    report = job.run()
    if log is not None and job.config.time_line is not None:
        path = Path(job.config.time_line)
        write_time_line(path, log, job.config.workers, job.begin, job.comm)
    return report


def _agree(comm: Any, config: Config, arena: Arena | None) -> None:
    """Raise in every process if the configuration is wrong for one of them."""
    problem = ""
    try:
        if config.steal == "node" and comm.size > 1:
            _check_arena(comm, arena)
        config.map_for(comm.size)
        affinity.check_affinity(config.workers, affinity.cpu_mask(), config.affinity, ConfigError)
    except ConfigError as error:
        problem = str(error)
    answers = comm.allgather((problem, config))
    for refusal, other in answers:
        if refusal:
            raise ConfigError(refusal, code="mate.option")
        if other != config:
            raise ConfigError(
                f"the processes have different configurations: {config} and {other}",
                code="mate.option",
            )


def _check_arena(comm: Any, arena: Arena | None) -> None:
    """Raise :class:`ConfigError` if the processes of the job do not share their memory."""
    from mpi4py import MPI

    if arena is None:
        raise ConfigError(
            "--steal node: this program does not share its arrays (mate.run(..., "
            "arena=mate.Arena(comm))); use --steal process",
            code="mate.option",
        )
    if MPI.Comm.Compare(comm, arena.comm) not in (MPI.IDENT, MPI.CONGRUENT):
        raise ConfigError(
            "--steal node: the arena was made with another communicator than that of this job: "
            "make it with the same one",
            code="mate.option",
        )


class _Job:
    """One process's part of a job."""

    def __init__(
        self,
        main: Main,
        config: Config,
        args: tuple[Any, ...],
        transport: Transport,
        log: EventLog | None,
        comm: Any,
        arena: Arena | None = None,
    ) -> None:
        self.comm = comm
        self.config = config
        self.begin = 0.0
        """When the ranks of all processes began (``perf_counter``)."""
        is_checked = wanted.is_wanted()
        if is_checked:
            # Imported only then: a job that is not checked starts faster.
            from runner.runtimes.mate import checked

            config = checked.checked_config(config)
        if config.steal != "node" or arena is None or arena.count == 1:
            arena = None
        self._ranks: RankMap = config.map_for(transport.processes)
        own = self._ranks.ranks[transport.process]
        self._tasks = [Task(local, rank) for local, rank in enumerate(own)]
        self._checker = None
        if is_checked:
            self._checker = checked.Checker(self._tasks)
            log = checked.CheckLog(self._checker)
        if log is not None:
            log.tasks = self._tasks
        self._transport = transport
        self._guard = Guard(transport.call_lock)
        masks, number = affinity.masks_on_node(comm)
        affinity.check_affinity(config.workers, masks[number], config.affinity, ConfigError)
        is_crowded = affinity.is_crowded(config.workers, masks)
        poller = Poller(transport, is_crowded)
        cpus = affinity.cpu_places(config.workers, config.affinity, masks, number)
        self._scheduler: RankScheduler | NativeScheduler
        self._workers: list[Worker] | list[NativeWorker]
        if config.core == "native":
            # Without it the loader of compiled code need not be imported.
            from runner.runtimes.mate.native.scheduler import NativeScheduler
            from runner.runtimes.mate.native.worker import NativeWorker

            native = self._scheduler = NativeScheduler(
                self._tasks, config, log, is_crowded, transport.processes > len(masks), arena
            )
            self._workers = [NativeWorker(n, cpu, native) for n, cpu in enumerate(cpus)]
        else:
            ranks = self._scheduler = RankScheduler(self._tasks, config.schedule_seed, log)
            self._workers = [
                Worker(n, cpu, config, ranks, transport, poller) for n, cpu in enumerate(cpus)
            ]
        transport.scheduler = self._scheduler
        self._timers = Timers(
            [worker.clock for worker in self._workers],
            len(self._tasks),
            lambda times: [self._scheduler.compute_s(task, times) for task in self._tasks],
        )
        layer = MessageLayer(self._ranks, self._scheduler, transport, poller)
        self._scheduler.connect(layer)
        if arena is not None:
            native.meet()
        calls, marks = CollectiveCalls(self._scheduler), Marks()
        if self._checker is not None:
            calls = checked.CheckedCalls(self._scheduler, self._checker, transport.process)
        for task in self._tasks:
            context = Context(task, layer, calls, config, self._timers, marks)
            if self._checker is not None:
                self._checker.watch_context(context)
            task.context = context
            task.coroutine = life(context, task, main, args)
        if comm is not None:
            self._scheduler.on_failure = self._abort

    def run(self) -> Report:
        barrier = threading.Barrier(len(self._workers) + 1)
        threads = [
            threading.Thread(
                target=worker.run,
                args=(barrier, self._guard.threads),
                daemon=True,
                name=f"mate-worker-{worker.number}",
            )
            for worker in self._workers
        ]
        with _switch_interval(), self._guard_calls():
            begin = self.begin = self._start(threads, barrier)
            self._join(threads)
            wall = time.perf_counter() - begin
        self._close_coroutines()
        self._scheduler.settle()
        if self._scheduler.failure is not None:
            _raise(*self._scheduler.failure)
        if self.comm is not None:
            _gentle_barrier(self._transport)
        if self._checker is not None:
            self._checker.close(self.comm)
        times = self._timers.result()
        return Report(
            process=self._transport.process,
            process_count=self._transport.processes,
            local_ranks=[t.rank for t in self._tasks],
            wall_s=wall,
            workers=times.workers,
            rank_compute_s=times.ranks,
            rank_workers=[sorted(t.workers) for t in self._tasks],
            results=[t.result for t in self._tasks],
        )

    def _guard_calls(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self.comm is None else self._guard.install()

    def _start(self, threads: list[threading.Thread], barrier: threading.Barrier) -> float:
        """Let the workers of all processes start at the same time; returns that time on this clock.

        There are two barriers. At the first, all workers of this process are ready, so none of them
        calls MPI or can fail while this thread waits for the other processes. It also returns if a
        worker has failed; then the scheduler knows.
        """
        try:
            for thread in threads:
                thread.start()
            barrier.wait()
            if self.comm is not None:
                self.comm.Barrier()
            begin = time.perf_counter()
            barrier.wait()
        except threading.BrokenBarrierError:
            return time.perf_counter()
        except BaseException as error:
            self._stop(error)
            barrier.abort()
            self._close_coroutines()
            raise
        return begin

    def _stop(self, error: BaseException) -> None:
        """End the job because of an error in the main thread."""
        if isinstance(error, KeyboardInterrupt) and self.comm is not None:
            self.comm.Abort(130)
        with self._scheduler.lock:
            self._scheduler.fail(None, error)

    def _join(self, threads: list[threading.Thread]) -> None:
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt as error:
            self._stop(error)
            raise

    def _close_coroutines(self) -> None:
        """Close the ranks that another rank's failure stopped: they then end without a warning."""
        for task in self._tasks:
            if task.coroutine is not None:
                # A worker interrupted in a rank closes this rank itself.
                with contextlib.suppress(ValueError):
                    task.coroutine.close()

    def _abort(self, task: Task | None, error: BaseException) -> None:
        """Print the error and end all processes; called by the worker that found it.

        It does not wait for the workers' end, because another worker may be in a long kernel.
        """
        who = "job" if task is None else f"rank {task.rank}"
        place = f"process {self._transport.process}"
        text = f"mate: {who} failed ({place})"
        if self._transport.call_lock is not None:
            self._transport.call_lock.enter_last()
        if isinstance(error, GraphError) and not is_first(self.comm, str(error)):
            # A lower process has found the same error: it prints it and ends this one.
            time.sleep(_END_S)
        if isinstance(error, RunnerError):
            text += f": {error}\n"
        else:
            text += "\n" + "".join(traceback.format_exception(_without_runtime(error)))
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
            sys.stdout.flush()
        finally:
            # Even if nothing can be printed: the other processes would wait for ever.
            self.comm.Abort(getattr(error, "exit_code", 1))


def _raise(task: Task | None, error: BaseException) -> NoReturn:
    if task is None or isinstance(error, RunnerError):
        raise error
    raise RankFailed(
        f"rank {task.rank} failed: {type(error).__name__}: {error}", code="mate.rank_failed"
    ) from error


def _without_runtime(error: BaseException) -> BaseException:
    """The exception without the frames of this package above the user's code."""
    trace = error.__traceback__
    while trace is not None and "runner.runtimes.mate" in str(
        trace.tb_frame.f_globals.get("__name__")
    ):
        trace = trace.tb_next
    return error.with_traceback(trace or error.__traceback__)


@contextlib.contextmanager
def _switch_interval() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _gentle_barrier(transport: Transport) -> None:
    """Wait for the other processes without using the core of their workers."""
    assert isinstance(transport, MpiTransport)
    request = transport.comm.Ibarrier()
    pause = 10e-6
    while not request.Test():
        time.sleep(pause)
        pause = min(2 * pause, 1e-3)
