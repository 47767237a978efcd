"""Workers: the kernel threads that run ranks and poll messages."""

from __future__ import annotations

import math
import threading
import time
from time import perf_counter

from runner.runtimes.core.words import FIRST_PAUSE_S, GROWTH, LATE, LONGEST, LOOKS
from runner.runtimes.mate.config import Config
from runner.runtimes.mate.context import advance, thread_rank
from runner.runtimes.mate.errors import MateError
from runner.runtimes.mate.log import Lapse
from runner.runtimes.mate.scheduler import RankScheduler, Sleeper
from runner.runtimes.mate.task import Task
from runner.runtimes.mate.transport import Poller, Transport
from runner.runtimes.workers import affinity
from runner.runtimes.workers.timers import COMPUTE, MPI, SCHEDULING, WAITING, WorkerClock


class Worker:
    """One worker; :meth:`run` is the body of its thread."""

    def __init__(
        self,
        number: int,
        cpu: int | None,
        config: Config,
        scheduler: RankScheduler,
        transport: Transport,
        poller: Poller,
    ) -> None:
        self.number = number
        self.clock = WorkerClock()
        self._cpu = cpu
        self._spin = config.idle_spin_us * 1e-6
        self._sleep = config.idle_sleep_us * 1e-6
        if not config.idle_sleep_us:
            self._spin, self._sleep = math.inf, FIRST_PAUSE_S
        self._scheduler = scheduler
        self._transport = transport
        self._poller = poller
        self._log = scheduler.log
        self._sleeper = Sleeper()
        self._resting = False
        """True if the worker counts as idle."""

    def run(self, barrier: threading.Barrier, idents: set[int]) -> None:
        """Pin the thread, wait for the others (twice), then run ranks until all have ended.

        A worker that fails before the ranks run breaks ``barrier``, so that no other one waits
        there.
        """
        try:
            affinity.pin(self._cpu, MateError)
            idents.add(threading.get_ident())
            barrier.wait()
            barrier.wait()
            self.clock.begin()
            self._work()
        except threading.BrokenBarrierError:
            # Another worker has failed and has reported it.
            return
        except BaseException as error:
            # Not a rank's fault: MPI refused a request, or the runtime has an error.
            self._fail(None, error)
            barrier.abort()
            return
        self.clock.end()

    def _work(self) -> None:
        scheduler = self._scheduler
        task: Task | None = None
        while True:
            if task is None:
                with scheduler.lock:
                    if scheduler.over():
                        return
                    task = self._take()
                if task is None:
                    task = self._idle()
                    if task is None:
                        return
            is_over = self._turn(task) if self._log is None else self._logged_turn(task)
            with scheduler.lock:
                scheduler.end_turn(task, is_over)
                task = None if scheduler.failure is not None else self._take()
            if self._transport.pending:
                seconds = self._poller.poll() if task is None else self._poller.poll_if_due()
                self.clock.add(MPI, seconds)
                if task is not None and scheduler.ready and scheduler.sleepers.asleep:
                    with scheduler.lock:
                        scheduler.call_workers()

    def _take(self) -> Task | None:
        """A ready rank; None if there is none: then the worker counts as idle. Needs the lock."""
        scheduler = self._scheduler
        sleepers, was_resting = scheduler.sleepers, self._resting
        task = scheduler.take()
        if task is None:
            if not was_resting:
                sleepers.idle += 1
                self._resting = True
            return None
        if was_resting:
            sleepers.idle -= 1
            self._resting = False
        if sleepers.asleep:
            scheduler.call_workers()
            if was_resting and not sleepers.looking and self._transport.pending:
                # This worker may be away for long: another one now polls messages.
                sleepers.call_for_messages()
        return task

    def _logged_turn(self, task: Task) -> bool:
        assert self._log is not None
        begin = perf_counter()
        is_over = self._turn(task)
        self._log.lapses.append(Lapse(self.number, task.rank, begin, perf_counter()))
        return is_over

    def _turn(self, task: Task) -> bool:
        """Run a rank until it waits (False) or ends (True)."""
        clock, coroutine = self.clock, task.coroutine
        assert coroutine is not None
        thread_rank.task = task
        task.clock = clock
        task.worker = self.number
        task.workers.add(self.number)
        total, before = task.compute_s[0], clock.seconds[COMPUTE]
        task.compute_s = total, before
        clock.switch(task.kind)
        is_over = False
        try:
            advance(coroutine)
        except StopIteration as stop:
            task.result = stop.value
            is_over = True
        except BaseException as error:
            self._fail(task, error)
            is_over = True
        clock.switch(SCHEDULING)
        task.compute_s = total + clock.seconds[COMPUTE] - before, None
        return is_over

    def _fail(self, task: Task | None, error: BaseException) -> None:
        with self._scheduler.lock:
            self._scheduler.fail(task, error)

    def _idle(self) -> Task | None:
        """A ready rank as soon as there is one; None if there will be no more work."""
        clock = self.clock
        clock.switch(WAITING)
        cpu = time.thread_time()
        begin = perf_counter()
        task = self._wait(begin)
        clock.waiting_cpu += time.thread_time() - cpu
        clock.switch(SCHEDULING)
        if self._log is not None:
            self._log.lapses.append(Lapse(self.number, -1, begin, perf_counter()))
        return task

    def _wait(self, begin: float) -> Task | None:
        scheduler, transport, poller = self._scheduler, self._transport, self._poller
        pause = FIRST_PAUSE_S

        def until_next_look() -> float | None:
            return pause if transport.pending else None

        self._spin_until(begin + self._spin)
        while True:
            with scheduler.lock:
                if scheduler.over():
                    return None
                task = self._take()
                if task is not None:
                    return task
                if not transport.pending:
                    scheduler.check_deadlock()
                    if scheduler.failure is not None:
                        return None
                scheduler.sleepers.sleep(self._sleeper, until_next_look)
            long = min(LATE * (perf_counter() - begin), LONGEST * self._sleep)
            pause = max(min(GROWTH * pause, self._sleep), long)
            for _ in range(LOOKS):
                if not transport.pending or scheduler.ready or poller.poll() == 0.0:
                    break

    def _spin_until(self, end: float) -> None:
        """Poll messages repeatedly, as long as this worker is the one that polls."""
        scheduler, transport, poller = self._scheduler, self._transport, self._poller
        while transport.pending and poller.poll() > 0.0:
            if scheduler.ready or scheduler.failure or perf_counter() >= end:
                return
            poller.pause()
