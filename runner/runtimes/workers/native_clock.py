"""The clock of a worker on the compiled core."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from runner.runtimes.core.core import Core, counter
from runner.runtimes.core.counter import steady
from runner.runtimes.core.words import WORKER
from runner.runtimes.workers.timers import WorkerTimes


class NativeClock:
    """One worker's clock; the words are the core's, and Python code counts its own messages."""

    __slots__ = (
        "_core",
        "_counts",
        "_cpu_id",
        "_kind",
        "_pending",
        "_seconds",
        "_since",
        "_waiting_cpu",
        "_worker",
        "bytes",
        "cpu",
        "messages",
        "regions",
    )

    def __init__(self, core: Core, worker: int) -> None:
        self._core, self._worker = core, worker
        reals, words = core.memory.reals, core.memory.words
        at = {
            name: worker + getattr(WORKER, name) - core.address >> 3
            for name in ("compute", "kind", "since", "regions", "waiting_cpu")
        }
        self._seconds = reals[at["compute"] : at["compute"] + 5]
        self._since = reals[at["since"] : at["since"] + 1]
        self._kind = words[at["kind"] : at["kind"] + 1]
        self._counts = words[at["regions"] : at["regions"] + 4]
        """Counts of compiled code: regions, messages, bytes, regions of other processes."""
        self._waiting_cpu = reals[at["waiting_cpu"] : at["waiting_cpu"] + 1]
        self._pending = [0.0] * 5
        """Seconds by kind that are not in the core's words yet: a write there takes longer."""
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
        self.settle()
        self._core.switch(self._worker, kind)

    def add(self, kind: int, seconds: float) -> None:
        """Count this time, which has just ended, as ``kind``."""
        self._pending[kind] += seconds

    def settle(self) -> None:
        """Write the added times to the core's words, before the core counts as another kind."""
        pending = self._pending
        if any(pending):
            self._pending = [0.0] * 5
            for kind, seconds in enumerate(pending):
                self._seconds[kind] += seconds
            self._since[0] += sum(pending)

    @contextmanager
    def during(self, kind: int) -> Generator[None, None, None]:
        """Count the time in this block as this kind, then as the previous kind."""
        before = self._kind[0]
        self.switch(kind)
        try:
            yield
        finally:
            self.switch(before)

    def _words(self) -> tuple[int | None, float, int, list[float], list[float]]:
        """The clock of the thread, and the start, kind, seconds and additions of its times."""
        words = float(self._since[0]), int(self._kind[0])
        return self._cpu_id, *words, [*self._seconds], [*self._pending]

    def read(self) -> WorkerTimes:
        """The times so far; any thread may call this while the worker's thread lives."""
        at, (cpu_id, since, kind, seconds, pending) = steady(self._words, counter().now)
        cpu = self.cpu
        if cpu_id is not None:
            if since:
                since += sum(pending)
                seconds = [a + b for a, b in zip(seconds, pending, strict=True)]
                seconds[kind] += max(0.0, at - since)
            cpu = time.clock_gettime(cpu_id)
        times = WorkerTimes(cpu_s=cpu, waiting_cpu_s=self._waiting_cpu[0])
        times.compute_s, times.mpi_s, times.buffering_s, times.waiting_s, times.scheduling_s = (
            seconds
        )
        regions, messages, sent_bytes, times.stolen = self._counts
        times.messages = self.messages + messages
        times.bytes = self.bytes + sent_bytes
        times.regions = regions
        return times
