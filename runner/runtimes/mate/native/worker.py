"""A worker on the compiled core."""

from __future__ import annotations

import threading

from runner.runtimes.mate.errors import MateError
from runner.runtimes.mate.native.scheduler import NativeScheduler
from runner.runtimes.workers import affinity


class NativeWorker:
    """One worker on the compiled core; :meth:`run` is the body of its thread."""

    def __init__(self, number: int, cpu: int | None, scheduler: NativeScheduler) -> None:
        self.number = number
        self.clock = scheduler.clocks[number]
        self._cpu = cpu
        self._scheduler = scheduler

    def run(self, barrier: threading.Barrier, idents: set[int]) -> None:
        """Pin the thread, wait for the others (twice), then run ranks until all have ended."""
        try:
            affinity.pin(self._cpu, MateError)
            idents.add(threading.get_ident())
            barrier.wait()
            barrier.wait()
            self.clock.begin()
            self._scheduler.work(self.number)
        except threading.BrokenBarrierError:
            # Another worker has failed and has reported it.
            return
        except BaseException as error:
            self._scheduler._fail(None, error)
            barrier.abort()
            return
        self.clock.end()
