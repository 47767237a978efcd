"""The time of workers: an exact partition of wall time, CPU time, and the report of a job."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol

from runner.runtimes.core.counter import steady

COMPUTE, MPI, BUFFERING, WAITING, SCHEDULING = range(5)


@dataclass
class WorkerTimes:
    """Seconds of one worker by kind, and its messages; the five kinds add up to ``wall_s``."""

    compute_s: float = 0.0
    """Bodies of regions and ranks, without ``mpi_s`` and ``buffering_s``."""
    mpi_s: float = 0.0
    """Inside MPI calls of ranks, and polling requests between two ranks."""
    buffering_s: float = 0.0
    """Inside ``ctx.buffering()``."""
    waiting_s: float = 0.0
    """No rank could continue (including polling in that time)."""
    scheduling_s: float = 0.0
    """The runtime's own work: finding and finishing regions, switching ranks."""
    cpu_s: float = 0.0
    """CPU time of the thread (CLOCK_THREAD_CPUTIME_ID), user and system."""
    waiting_cpu_s: float = 0.0
    """The part of ``cpu_s`` used while waiting."""
    messages: int = 0
    bytes: int = 0
    regions: int = 0
    stolen: int = 0
    """The number of ``regions`` that belonged to ranks of other processes (``--steal node``)."""

    @property
    def wall_s(self) -> float:
        parts = (self.compute_s, self.mpi_s, self.buffering_s, self.waiting_s, self.scheduling_s)
        return sum(parts)

    def plus(self, other: WorkerTimes, sign: int = 1) -> WorkerTimes:
        """The sum field by field; with ``sign=-1`` the difference."""
        mine, theirs = dataclasses.asdict(self), dataclasses.asdict(other)
        return WorkerTimes(**{k: mine[k] + sign * theirs[k] for k in mine})

    def clip(self) -> WorkerTimes:
        """The same with negative values replaced by zero."""
        return WorkerTimes(**{k: max(v, 0) for k, v in dataclasses.asdict(self).items()})


@dataclass
class Times:
    """The times of a process: those of each worker, and the seconds in the bodies of each rank."""

    workers: list[WorkerTimes]
    ranks: list[float]

    @classmethod
    def none(cls, workers: int, ranks: int) -> Times:
        return cls([WorkerTimes() for _ in range(workers)], [0.0] * ranks)

    def plus(self, other: Times, sign: int = 1) -> Times:
        """The sum; with ``sign=-1`` the difference."""
        return Times(
            [a.plus(b, sign) for a, b in zip(self.workers, other.workers, strict=True)],
            [a + sign * b for a, b in zip(self.ranks, other.ranks, strict=True)],
        )


class Clock(Protocol):
    """One worker's clock, of either core; only the worker's own thread changes it."""

    messages: int
    bytes: int
    regions: int

    def switch(self, kind: int) -> None: ...
    def add(self, kind: int, seconds: float) -> None: ...
    def during(self, kind: int) -> AbstractContextManager[None]: ...
    def read(self) -> WorkerTimes: ...


class WorkerClock:
    """One worker's clock; only the worker's own thread switches it."""

    __slots__ = (
        "bytes",
        "cpu",
        "cpu_id",
        "kind",
        "messages",
        "regions",
        "seconds",
        "since",
        "waiting_cpu",
    )

    def __init__(self) -> None:
        self.seconds = [0.0] * 5
        self.kind = SCHEDULING
        self.since = perf_counter()
        self.messages = self.bytes = self.regions = 0
        self.waiting_cpu = 0.0
        self.cpu = 0.0
        self.cpu_id: int | None = None
        """Clock of the thread; None before it begins and after it has ended."""

    def begin(self) -> None:
        """Start counting; the worker's thread calls this first."""
        self.cpu_id = time.pthread_getcpuclockid(threading.get_ident())
        self.since = perf_counter()

    def end(self) -> None:
        """Stop counting; the worker's thread calls this last."""
        self.switch(SCHEDULING)
        self.cpu = time.thread_time()
        self.cpu_id = None

    def switch(self, kind: int) -> None:
        """Count the time from now on as this kind."""
        now = perf_counter()
        self.seconds[self.kind] += now - self.since
        self.since = now
        self.kind = kind

    def add(self, kind: int, seconds: float) -> None:
        """Count this time, which has just ended, as ``kind``: a third of the cost of ``during``."""
        self.seconds[kind] += seconds
        self.since += seconds

    @contextmanager
    def during(self, kind: int) -> Iterator[None]:
        """Count the time in this block as this kind, then as the previous kind."""
        before = self.kind
        self.switch(kind)
        try:
            yield
        finally:
            self.switch(before)

    def _words(self) -> tuple[int | None, float, int, list[float]]:
        return self.cpu_id, self.since, self.kind, [*self.seconds]

    def read(self) -> WorkerTimes:
        """The times so far; any thread may call this while the worker's thread lives."""
        at, (cpu_id, since, kind, seconds) = steady(self._words, perf_counter)
        cpu = self.cpu
        if cpu_id is not None:
            seconds[kind] += max(0.0, at - since)
            cpu = time.clock_gettime(cpu_id)
        times = WorkerTimes(cpu_s=cpu, waiting_cpu_s=self.waiting_cpu)
        times.compute_s, times.mpi_s, times.buffering_s, times.waiting_s, times.scheduling_s = (
            seconds
        )
        times.messages, times.bytes, times.regions = self.messages, self.bytes, self.regions
        return times


class Timers:
    """Start, stop and reset for a process's workers and ranks; they run from the start of the job.

    ``compute_s`` returns the seconds in the bodies of each rank, from the workers' times.
    """

    def __init__(
        self,
        clocks: Sequence[Clock],
        ranks: int,
        compute_s: Callable[[Sequence[WorkerTimes]], list[float]],
    ) -> None:
        self._clocks = clocks
        self._compute_s = compute_s
        self._total = Times.none(len(clocks), ranks)
        self._start_times: Times | None = self._total

    def start(self) -> None:
        """Count from now on; does nothing while running."""
        if self._start_times is None:
            self._start_times = self._read()

    def stop(self) -> None:
        """Stop counting; does nothing while stopped."""
        if self._start_times is not None:
            self._total = self._now()
            self._start_times = None

    def reset(self) -> None:
        """Set the counts to zero; counting continues if it is running."""
        self._total = Times.none(len(self._total.workers), len(self._total.ranks))
        if self._start_times is not None:
            self._start_times = self._read()

    def _read(self) -> Times:
        workers = [clock.read() for clock in self._clocks]
        return Times(workers, self._compute_s(workers))

    def _now(self) -> Times:
        assert self._start_times is not None
        return self._total.plus(self._read().plus(self._start_times, -1))

    def result(self) -> Times:
        """The times counted so far."""
        times = self._total if self._start_times is None else self._now()
        # A rank's time is read while its turn may start or end, and an MPI call counts as such when
        # it returns. So a time that hardly grew can seem to have decreased.
        return Times([t.clip() for t in times.workers], [max(t, 0.0) for t in times.ranks])


@dataclass
class Report:
    """One process's part of a job, in seconds.

    Times of workers and ranks are those that the timers counted.
    """

    process: int
    process_count: int
    local_ranks: list[int]
    """Global rank of each local rank; the lists of ranks below have the same order."""
    wall_s: float
    """From the common start to the end of the last local rank."""
    workers: list[WorkerTimes]
    rank_compute_s: list[float]
    """Time in the bodies of each rank; load balancing needs it."""
    rank_workers: list[list[int]]
    """The workers that ran each rank."""
    results: list[Any] = field(default_factory=list)
    """The value that each rank returned."""

    def totals(self) -> dict[str, float]:
        """Sums over the workers of this process."""
        total = WorkerTimes()
        for times in self.workers:
            total = total.plus(times)
        return {**dataclasses.asdict(total), "wall_s": self.wall_s, "workers": len(self.workers)}

    def gather(self, comm: Any) -> list[Report] | None:
        """The reports of all processes, without results, at process 0; collective over ``comm``."""
        reports: list[Report] | None = comm.gather(dataclasses.replace(self, results=[]), root=0)
        return reports
