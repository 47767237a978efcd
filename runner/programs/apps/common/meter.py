"""The meter of each worker in a run: seconds by phase, CPU time of the kernels, messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import perf_counter, thread_time
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from runner.runtimes.workers.timers import WorkerTimes

V = TypeVar("V")
PHASES = ("compute", "mpi", "buffering", "waiting")
"""Kernel; start of sends and receives; pack and unpack; waiting (Martin 2018, section 5.1)."""

SAMPLE = 17
"""Every 17th kernel is sampled, because reading a thread's CPU time is a system call (2 us here).

The number is not a power of two: otherwise it might always sample the same tile.
"""


@dataclass(slots=True)
class Meter:
    """The seconds of one worker; only that worker's thread adds to it."""

    compute: float = 0.0
    mpi: float = 0.0
    buffering: float = 0.0
    waiting: float = 0.0
    _unread: int = 0
    _sampled_wall: float = 0.0
    _sampled_cpu: float = 0.0

    def run(self, kernel: Callable[[], None]) -> float:
        """Run a numerical kernel; its wall seconds, which count as ``compute``."""
        if not self._unread:
            return self._read(kernel)
        self._unread -= 1
        begin = perf_counter()
        kernel()
        duration_s = perf_counter() - begin
        self.compute += duration_s
        return duration_s

    def _read(self, kernel: Callable[[], None]) -> float:
        """Run a kernel and also measure its CPU time."""
        self._unread = SAMPLE - 1
        cpu = thread_time()
        begin = perf_counter()
        kernel()
        duration_s = perf_counter() - begin
        self._sampled_cpu += thread_time() - cpu
        self._sampled_wall += duration_s
        self.compute += duration_s
        return duration_s

    def copy(self, kernel: Callable[[], None]) -> None:
        """Pack or unpack; the time counts as ``buffering``."""
        begin = perf_counter()
        kernel()
        self.buffering += perf_counter() - begin

    @property
    def compute_cpu(self) -> float:
        """CPU seconds of the kernels: their wall time times the CPU share in the samples.

        It is at most the wall time; any excess would be the cost of reading the CPU time.
        """
        if not self._sampled_wall:
            return 0.0
        return self.compute * min(1.0, self._sampled_cpu / self._sampled_wall)

    @property
    def phases(self) -> dict[str, float]:
        """Seconds by :data:`PHASES`."""
        return {name: getattr(self, name) for name in PHASES}


def meter_of(times: WorkerTimes, sampled_s: float, sampled_cpu_s: float) -> Meter:
    """The meter of a worker of the MATE runtime.

    ``sampled_s``, ``sampled_cpu_s``: wall and CPU seconds of the sampled kernels.
    """
    phases = times.compute_s, times.mpi_s, times.buffering_s, times.waiting_s
    return Meter(*phases, _sampled_wall=sampled_s, _sampled_cpu=sampled_cpu_s)


@dataclass
class RunTimes:
    """The times of the timed iterations on one process."""

    wall_s: float
    """Seconds from the common start to the end of the process's last rank."""
    meters: list[Meter]
    """One meter for each worker."""
    rank_compute: list[float]
    """Kernel seconds of each rank of the process."""
    messages: int
    """Number of messages sent in the timed iterations."""
    bytes: int
    task_waiting: float | None = None
    """Seconds that tasks waited for messages, summed over the tasks of the process."""
    chunks: tuple[int, int] | None = None
    """Chunks of the process's messages: copied by itself, and by others for it."""


class KernelCounter(Protocol):
    """A rank or a task with the seconds of its kernels.

    ``kernels_s``: wall seconds of all kernels, and wall and CPU seconds of the sampled ones.
    """

    kernels_s: NDArray[np.float64]


def timed_of(
    wall_s: float,
    workers: Iterable[WorkerTimes],
    pieces: Iterable[KernelCounter],
    traffic: tuple[int, int],
    task_waiting: float | None = None,
) -> RunTimes:
    """The times of a process whose ``pieces`` its workers ran; ``traffic``: messages and bytes."""
    kernels_s = np.array([piece.kernels_s for piece in pieces])
    _, sampled_s, sampled_cpu_s = kernels_s.sum(axis=0).tolist()
    meters = [meter_of(times, sampled_s, sampled_cpu_s) for times in workers]
    return RunTimes(wall_s, meters, kernels_s[:, 0].tolist(), *traffic, task_waiting)


@dataclass(frozen=True)
class Breakdown:
    """The times of a run by phase over all processes; the same for every variant."""

    phases: dict[str, dict[str, float]]
    """Maximum and mean over the workers of each phase."""
    figures: dict[str, Any] = field(default_factory=dict)
    """The figures for the JSON line; the five parts and ``end_s`` add up to ``solver_s``."""

    def result(self, startup_s: float, seconds: list[float]) -> dict[str, Any]:
        """The end of a JSON line; it has the ``seconds`` of the repetitions if they are several."""
        several = {"repetitions_s": seconds} if len(seconds) > 1 else {}
        return {"phases": self.phases, **self.figures, "startup_s": startup_s, **several}

    @property
    def words(self) -> str:
        """The mean seconds of each phase."""
        return ", ".join(f"{name} {s['mean']:.4f}" for name, s in self.phases.items())


@dataclass(frozen=True)
class RunSummary(Generic[V]):
    """The repetitions of one run, with the verdict on its result.

    It holds the seconds of each repetition (the slowest process), their median as ``solver_s``, and
    the times by phase of that repetition.
    """

    seconds: list[float]
    solver_s: float
    breakdown: Breakdown
    verdict: V
    startup_s: float


def breakdown(comm: Any, times: RunTimes, solver_s: float, odf: float) -> Breakdown:
    """The breakdown over all processes, on every process. Collective.

    ``other_s`` is the rest of a process's time: the Python loop, the runtime's scheduling.
    ``end_s`` is the mean wait from a process's end to that of the slowest one. ``rank_imbalance``
    is the share of the time that uneven kernels cost (Martin 2018, equation 8.1).
    ``task_waiting_s`` is the sum over the tasks of a process, the mean over processes.
    ``chunks_own`` and ``chunks_given`` are sums over the processes.
    """
    everyone: list[RunTimes] = comm.allgather(times)
    workers = [meter for process in everyone for meter in process.meters]
    ranks = [seconds for process in everyone for seconds in process.rank_compute]
    phases_by_worker = [meter.phases for meter in workers]
    phases = {
        name: {
            "max": max(s[name] for s in phases_by_worker),
            "mean": sum(s[name] for s in phases_by_worker) / len(phases_by_worker),
        }
        for name in PHASES
    }
    means = {name: phases[name]["mean"] for name in PHASES}
    mean_wall_s = sum(p.wall_s for p in everyone) / len(everyone)
    figures = {
        **{f"{name}_s": means[name] for name in PHASES},
        "other_s": mean_wall_s - sum(means.values()),
        "end_s": solver_s - mean_wall_s,
        "compute_cpu_s": sum(meter.compute_cpu for meter in workers) / len(workers),
        "messages": sum(p.messages for p in everyone),
        "bytes": sum(p.bytes for p in everyone),
        "rank_imbalance": (max(ranks) - sum(ranks) / len(ranks)) / solver_s,
        "odf": odf,
    }
    waiting_s = [p.task_waiting for p in everyone if p.task_waiting is not None]
    if waiting_s:
        figures["task_waiting_s"] = sum(waiting_s) / len(waiting_s)
    chunks = [p.chunks for p in everyone if p.chunks is not None]
    if chunks:
        figures["chunks_own"], figures["chunks_given"] = map(sum, zip(*chunks, strict=True))
    return Breakdown(phases, figures)
