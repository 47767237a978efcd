"""The clock of a worker on the compiled core."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from runner.mate.timers import WorkerTimes
from runner.native.core import Core
from runner.native.words import WORKER


class NativeClock:
    """One worker's clock; the words are the core's, and Python code counts what it sends."""

    def __init__(self, core: Core, worker: int) -> None:
        self._core, self._worker = core, worker
        self.messages = self.bytes = self.regions = 0
        self.cpu = 0.0
        self._cpu_id: int | None = None

    def begin(self) -> None:
        """Start counting; the worker's thread calls this first."""
        self._cpu_id = time.pthread_getcpuclockid(threading.get_ident())

    def end(self) -> None:
        """Stop counting; the worker's thread calls this last."""
        self.cpu = time.thread_time()
        self._cpu_id = None

    def switch(self, kind: int) -> None:
        """Count the time from now on as this kind; the worker's thread calls this."""
        self._core.switch(self._worker, kind)

    def add(self, kind: int, seconds: float) -> None:
        """Count this time, which is just over, as ``kind``."""
        reals, at = self._core.memory.reals, self._worker - self._core.address >> 3
        reals[at + (WORKER.compute >> 3) + kind] += seconds
        reals[at + (WORKER.since >> 3)] += seconds

    @contextmanager
    def during(self, kind: int) -> Generator[None, None, None]:
        """Count the time in this block as this kind, then as the kind before."""
        before = self._core.memory.get(self._worker + WORKER.kind)
        self.switch(kind)
        try:
            yield
        finally:
            self.switch(before)

    def read(self) -> WorkerTimes:
        """The times so far; any thread may call this while the worker's thread lives."""
        get, memory = self._core.memory.get, self._core.memory
        first = self._worker + WORKER.compute
        spent = [memory.get_real(first + 8 * kind) for kind in range(5)]
        cpu_id, cpu = self._cpu_id, self.cpu
        if cpu_id is not None:
            since = memory.get_real(self._worker + WORKER.since)
            if since:
                spent[get(self._worker + WORKER.kind)] += max(0.0, time.perf_counter() - since)
            cpu = time.clock_gettime(cpu_id)
        waiting_cpu = memory.get_real(self._worker + WORKER.waiting_cpu)
        times = WorkerTimes(cpu_s=cpu, waiting_cpu_s=waiting_cpu)
        times.compute_s, times.mpi_s, times.buffering_s, times.waiting_s, times.scheduling_s = spent
        times.messages = self.messages + get(self._worker + WORKER.messages)
        times.bytes = self.bytes + get(self._worker + WORKER.bytes)
        times.regions = get(self._worker + WORKER.regions)
        return times
