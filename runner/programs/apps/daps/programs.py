"""The common interface of the programs, and the one that tests if a sleeping rank is reached."""

from __future__ import annotations

from time import perf_counter, sleep
from typing import Protocol

import numpy as np

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.daps.options import Options
from runner.runtimes.intranode.daps import Daps

Seconds = dict[str, float]
_STRIDE = 64
"""Bytes between those of a strided send."""
_TIMES = 2
"""Operations of a kind."""


class Program(Protocol):
    """One rank of a program; all ranks make it and run it under several configurations."""

    def run(self) -> Seconds:
        """Run it once on all ranks together; seconds in total (``seconds``) and of its parts.

        Ranks that only make progress call the barrier of all ranks.
        """
        ...

    def right(self) -> bool:
        """True if this rank's data are right after the last run."""
        ...


class Capability:
    """The first rank sends to the first one of the next node, which sleeps; others wait.

    On one node the target is the second rank (Ouyang 3.5.1).
    """

    def __init__(self, daps: Daps, options: Options) -> None:
        self._daps, self._options = daps, options
        self._target = next((r for r in range(daps.size) if daps.nodes[r] != daps.nodes[0]), 1)
        self._origin = daps.rank == 0
        self._active = daps.rank in (0, self._target)
        count = options.size // 8 if self._active else 0
        self._memory = daps.zeros((_TIMES, count))
        self._window = daps.window(self._memory)
        self._buffer = daps.zeros((_TIMES, count))
        self._values = np.arange(count) % 1001 + np.arange(1.0, _TIMES + 1.0)[:, None]
        send_count = options.strided_size if self._active and "send" in options.operations else 0
        self._bytes = daps.zeros((_TIMES, send_count, _STRIDE), np.uint8)[:, :, 0]
        self._text = np.array(np.arange(send_count) % 251 + np.arange(_TIMES)[:, None], np.uint8)
        self._good = True

    def run(self) -> Seconds:
        if self._target not in self._daps.users:
            raise AppUsageError(
                f"rank {self._target} computes nothing in this mode: start more ranks",
                code="app_option.ranks",
            )
        seconds_by_operation = {name: self._operation(name) for name in self._options.operations}
        return {"seconds": sum(seconds_by_operation.values()), **seconds_by_operation}

    def _operation(self, name: str) -> float:
        """The seconds of the first rank until the operations are over."""
        daps, seconds = self._daps, 0.0
        self._prepare(name)
        daps.barrier()
        if self._origin:
            # The target may still look for messages when it leaves the barrier.
            sleep(self._options.sleep_ms / 10000)
            begin = perf_counter()
            self._send() if name == "send" else self._operate(name)
            seconds = perf_counter() - begin
        elif daps.rank == self._target:
            coming = (
                [daps.irecv(self._bytes[n], 0, n) for n in range(_TIMES)] if name == "send" else []
            )
            sleep(self._options.sleep_ms / 1000)
            daps.waitall(coming)
        daps.barrier()
        self._good = self._good and self._is_right(name)
        return seconds

    def _send(self) -> None:
        daps = self._daps
        daps.waitall([daps.isend(self._bytes[n], self._target, n) for n in range(_TIMES)])

    def _operate(self, name: str) -> None:
        operation = getattr(self._window, name)
        for n in range(_TIMES):
            operation(self._target, self._buffer[n], n)
        self._daps.flush(self._target)

    def _prepare(self, name: str) -> None:
        """Set the arrays, one of which is written."""
        if not self._active:
            return
        reads = name == "get"
        self._memory[...] = self._values if reads else 1.0
        self._buffer[...] = 0.0 if reads else self._values
        self._bytes[...] = self._text if self._origin else 0

    def _is_right(self, name: str) -> bool:
        if not self._active or (name in ("put", "accumulate") and self._origin):
            return True
        if name == "send":
            return bool(np.array_equal(self._bytes, self._text))
        if name == "get":
            return bool(np.array_equal(self._buffer, self._values)) or not self._origin
        more = 1.0 if name == "accumulate" else 0.0
        return bool(np.array_equal(self._memory, self._values + more))

    def right(self) -> bool:
        return self._good


def duration(daps: Daps, seconds: float) -> float:
    """The longest time of all ranks."""
    longest: float = max(daps.comm.allgather(seconds))
    return longest
