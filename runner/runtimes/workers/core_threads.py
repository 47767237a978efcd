"""The threads that run a core: one for each worker, and perhaps one that only polls."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence

from runner.errors import RunnerError
from runner.runtimes.core.core import Core
from runner.runtimes.workers import affinity
from runner.runtimes.workers.native_clock import NativeClock
from runner.runtimes.workers.timers import WorkerTimes


class CoreThreads:
    """The workers of a core and their clocks.

    ``cpus``: the CPU of each thread, None for any; one more than workers if a thread polls.
    ``report_failure`` receives a thread's exception. ``error``: the class of pinning errors.
    """

    def __init__(
        self,
        core: Core,
        cpus: Sequence[int | None],
        error: type[RunnerError],
        report_failure: Callable[[BaseException], None],
    ) -> None:
        self._core, self._cpus, self._error = core, cpus, error
        self._report_failure = report_failure
        self._clocks = [NativeClock(core, worker) for worker in core.workers]

    def run_in_caller(self) -> None:
        """Let the calling thread be the only worker."""
        affinity.pin(None, self._error)
        self._work(0)

    def run(self, is_caller_first: bool = False) -> None:
        """Start the threads, and wait until all have ended.

        ``is_caller_first``: the calling thread is the first worker, as only it may make MPI calls.
        """
        threads = [
            threading.Thread(target=self._live, args=(number, cpu), daemon=True)
            for number, cpu in enumerate(self._cpus)
        ]
        if is_caller_first:
            threads.pop(0)
        for thread in threads:
            thread.start()
        if is_caller_first:
            before = os.sched_getaffinity(0)
            self._live(0, self._cpus[0])
            os.sched_setaffinity(0, before)
        for thread in threads:
            thread.join()

    def _live(self, number: int, cpu: int | None) -> None:
        try:
            affinity.pin(cpu, self._error)
            if number < len(self._clocks):
                self._work(number)
            else:
                self._core.work(self._core.server)
        except BaseException as error:
            self._report_failure(error)

    def _work(self, number: int) -> None:
        self._clocks[number].begin()
        self._core.work(self._core.workers[number])
        self._clocks[number].end()

    def times(self) -> list[WorkerTimes]:
        """The times of each worker."""
        return [clock.read() for clock in self._clocks]
