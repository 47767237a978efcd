"""Keeping this process, and whatever it starts, on a set of CPUs."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from types import TracebackType

from runner.cpuset import text_of
from runner.errors import RunnerError


class Confinement:
    """Context manager: all threads of this process run on ``cpus``; None changes nothing.

    The tuner itself is confined too, not only its programs: what it computes between two runs
    would be foreign load to a measurement on the other CPUs.  Raises :class:`RunnerError` where
    this process may not use one of the CPUs.
    """

    def __init__(self, cpus: frozenset[int] | None) -> None:
        mine = os.sched_getaffinity(0)
        if cpus is not None and not (cpus and cpus <= mine):
            raise RunnerError(
                f"cpus = {text_of(cpus)!r} of the cluster definition: this process may use "
                f"only the CPUs {text_of(mine)} (those of the machine, or fewer in a "
                "container, a batch job or under taskset); choose from these"
            )
        self._cpus = cpus
        self._before: dict[int, set[int]] = {}

    def __enter__(self) -> Confinement:
        if self._cpus is None:
            return self
        self._before = {thread: os.sched_getaffinity(thread) for thread in _threads()}
        _move({thread: set(self._cpus) for thread in self._before})
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before:
            main = self._before[os.getpid()]
            # A thread that was started meanwhile inherited the confinement.
            _move({thread: self._before.get(thread, main) for thread in _threads()})
            self._before = {}


def _threads() -> list[int]:
    return [int(place.name) for place in Path("/proc/self/task").iterdir()]


def _move(places: dict[int, set[int]]) -> None:
    for thread, cpus in places.items():
        # It may have ended meanwhile.
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(thread, cpus)
