"""What each worker of a run did: seconds by phase, CPU time of the kernels, messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter, thread_time
from typing import Any

PHASES = ("compute", "mpi", "buffering", "waiting")
"""Kernel; issuing sends and receives; pack and unpack; waiting (Martin 2018, section 5.1)."""

_SAMPLE = 17
"""Reading a thread's CPU time is a system call (2 us here), so only every 17th kernel is read.  No
power of two: with so many tiles it would be the same tile every time."""


@dataclass(slots=True)
class Meter:
    """Seconds of one worker; only that worker's thread adds to it."""

    compute: float = 0.0
    mpi: float = 0.0
    buffering: float = 0.0
    waiting: float = 0.0
    _unread: int = 0
    _sampled: float = 0.0
    _sampled_cpu: float = 0.0

    def run(self, kernel: Callable[[], None]) -> float:
        """Run a numerical kernel; its wall seconds, which count as ``compute``."""
        if not self._unread:
            return self._read(kernel)
        self._unread -= 1
        begin = perf_counter()
        kernel()
        spent = perf_counter() - begin
        self.compute += spent
        return spent

    def _read(self, kernel: Callable[[], None]) -> float:
        """Also read the CPU time."""
        self._unread = _SAMPLE - 1
        cpu = thread_time()
        begin = perf_counter()
        kernel()
        spent = perf_counter() - begin
        self._sampled_cpu += thread_time() - cpu
        self._sampled += spent
        self.compute += spent
        return spent

    def copy(self, kernel: Callable[[], None]) -> None:
        """Pack or unpack; counts as ``buffering``."""
        begin = perf_counter()
        kernel()
        self.buffering += perf_counter() - begin

    @property
    def compute_cpu(self) -> float:
        """CPU seconds of the kernels: their wall time times the share found in the samples.

        At most the wall time; above it would be what reading the CPU time itself takes.
        """
        if not self._sampled:
            return 0.0
        return self.compute * min(1.0, self._sampled_cpu / self._sampled)

    @property
    def phases(self) -> dict[str, float]:
        """Seconds by :data:`PHASES`."""
        return {name: getattr(self, name) for name in PHASES}


@dataclass
class Timed:
    """The timed iterations of one process."""

    elapsed: float
    """Seconds from the common start to the end of the process's last rank."""
    meters: list[Meter]
    """One for each worker."""
    rank_compute: list[float]
    """Kernel seconds of each rank of the process."""
    messages: int
    """Sent in the timed iterations."""
    bytes: int


@dataclass(frozen=True)
class Breakdown:
    """Where the time of a run went, over all processes; the same for every variant."""

    phases: dict[str, dict[str, float]]
    """Maximum and mean over the workers of each phase."""
    figures: dict[str, Any] = field(default_factory=dict)
    """What the JSON line has; the five parts and ``end_s`` add up to ``solver_s``."""


def breakdown(comm: Any, timed: Timed, solver_s: float, odf: float) -> Breakdown:
    """Collective; the answer is on every process.

    ``other_s`` is what is left of a process's time: the Python loop, the runtime's scheduling.
    ``end_s`` is the mean wait from a process's end to that of the slowest one.  ``rank_imbalance``
    is the share of the time that uneven kernels cost (Martin 2018, equation 8.1).
    """
    everyone: list[Timed] = comm.allgather(timed)
    workers = [meter for process in everyone for meter in process.meters]
    ranks = [seconds for process in everyone for seconds in process.rank_compute]
    spent = [meter.phases for meter in workers]
    phases = {
        name: {"max": max(s[name] for s in spent), "mean": sum(s[name] for s in spent) / len(spent)}
        for name in PHASES
    }
    means = {name: phases[name]["mean"] for name in PHASES}
    elapsed = sum(p.elapsed for p in everyone) / len(everyone)
    figures = {
        **{f"{name}_s": means[name] for name in PHASES},
        "other_s": elapsed - sum(means.values()),
        "end_s": solver_s - elapsed,
        "compute_cpu_s": sum(meter.compute_cpu for meter in workers) / len(workers),
        "messages": sum(p.messages for p in everyone),
        "bytes": sum(p.bytes for p in everyone),
        "rank_imbalance": (max(ranks) - sum(ranks) / len(ranks)) / solver_s,
        "odf": odf,
    }
    return Breakdown(phases, figures)
