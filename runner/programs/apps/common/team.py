"""A team: threads of one process that compute parts of a block, as in a parallel OpenMP loop.

Fork and join are flags in memory; each flag is written by one thread only. The waiting is compiled
code outside the interpreter's lock, because Python's own barrier costs as much as a small kernel.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from runner.errors import RunnerError
from runner.programs.apps.common.meter import Meter
from runner.runtimes.core.kernels import Kernels, load, scalars
from runner.runtimes.workers.affinity import pin

_SPINS = 20_000
"""Number of looks at a flag (about 10 us) before the processor is offered to others."""


def kernels() -> Kernels:
    """The compiled flags.  Raises :class:`runner.errors.RunnerError`."""
    return load("runner.programs.apps.common.kernels")


class Flag:
    """A counter that one thread raises and others wait for."""

    def __init__(self) -> None:
        # A cache line on either side, so that neighbours in memory do not slow the waiting.
        self._value = np.zeros(16, dtype=np.uint64)
        self._level = np.zeros(1, dtype=np.uint64)
        self._raise = kernels().bind("raise_flag", self._value, self._level)

    def raise_to(self, level: int) -> None:
        """Raise the flag; waiting threads then see everything that this thread wrote before."""
        self._level[0] = level
        self._raise()

    def waiter(self) -> Waiter:
        """The view of this flag for one waiting thread."""
        return Waiter(self._value)


class Waiter:
    """One thread's view of a :class:`Flag`."""

    def __init__(self, value: NDArray[np.uint64]) -> None:
        self._last_value = np.zeros(1, dtype=np.uint64)
        self._geometry = scalars([0, _SPINS])
        self._look = kernels().bind("await_flag", value, self._geometry, self._last_value)

    def wait(self, level: int, stop: threading.Event) -> bool:
        """Wait until the flag has reached ``level`` (True) or ``stop`` is set (False)."""
        self._geometry[0] = level
        while True:
            self._look()
            if self._last_value[0] >= level:
                return True
            if stop.is_set():
                return False
            os.sched_yield()


class Team:
    """A team; ``tasks[w][k]`` is the work of worker ``w`` in a step of kind ``k``.

    Worker 0 is the caller. Use it as a context manager; the other threads live as long as the
    context. The time that they wait for the caller is not metered: it is all the time in which they
    do not compute.
    """

    def __init__(
        self,
        tasks: Sequence[Sequence[Callable[[], None]]],
        cpus: Sequence[int | None],
        meters: list[Meter],
    ) -> None:
        self._tasks, self._cpus, self._meters = tasks, cpus, meters
        self._go = Flag()
        self._done_flags = [Flag() for _ in tasks[1:]]
        self._joins = [flag.waiter() for flag in self._done_flags]
        self._kind, self._steps = 0, 0
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._mask = os.sched_getaffinity(0)
        self._threads = [
            threading.Thread(target=self._follow, args=(w, self._go.waiter()), daemon=True)
            for w in range(1, len(tasks))
        ]

    def __enter__(self) -> Team:
        pin(self._cpus[0], RunnerError)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        os.sched_setaffinity(0, self._mask)

    def step(self, kind: int) -> None:
        """Let all workers do their task of this kind; returns when all have done it.

        Raises the exception of a worker.
        """
        self._steps += 1
        self._kind = kind
        self._go.raise_to(self._steps)
        meter = self._meters[0]
        meter.run(self._tasks[0][kind])
        begin = perf_counter()
        for join in self._joins:
            if not join.wait(self._steps, self._stop):
                raise RuntimeError("a worker thread failed") from self._failure
        meter.waiting += perf_counter() - begin

    def _follow(self, worker: int, go: Waiter) -> None:
        """The loop of a worker thread."""
        try:
            pin(self._cpus[worker], RunnerError)
            self._obey(worker, go)
        except BaseException as error:
            self._failure = error
            self._stop.set()

    def _obey(self, worker: int, go: Waiter) -> None:
        meter, tasks, flag = self._meters[worker], self._tasks[worker], self._done_flags[worker - 1]
        step = 1
        while go.wait(step, self._stop):
            meter.run(tasks[self._kind])
            flag.raise_to(step)
            step += 1
