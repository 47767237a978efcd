"""A loop over one collective: its preparation, timing and verification."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.mcoll import theory
from runner.runtimes.intranode.mcoll import Collective, MultiObject

Array = NDArray[Any]


class Loop:
    """One collective of ``size`` bytes with the present configuration of ``mcoll``."""

    def __init__(self, mcoll: MultiObject, operation: str, size: int) -> None:
        self._mcoll, self._operation, self._size = mcoll, operation, size
        build: dict[str, Callable[[], Collective]] = {
            "allgather": self._allgather,
            "allreduce": self._allreduce,
            "scatter": self._scatter,
        }
        self._send: Array
        self._recv: Array
        self._collective = build[operation]()
        self.form = self._collective.form

    def _allgather(self) -> Collective:
        mcoll, size = self._mcoll, self._size
        self._send, self._recv = (
            np.zeros(size, np.uint8),
            np.zeros(size * mcoll.size, np.uint8),
        )
        return mcoll.allgather_init(self._send, self._recv)

    def _allreduce(self) -> Collective:
        self._send, self._recv = np.zeros(self._size // 8), np.zeros(self._size // 8)
        return self._mcoll.allreduce_init(self._send, self._recv)

    def _scatter(self) -> Collective:
        mcoll, size = self._mcoll, self._size
        whole = size * mcoll.size if mcoll.rank == 0 else 0
        self._send, self._recv = np.zeros(whole, np.uint8), np.zeros(size, np.uint8)
        return mcoll.scatter_init(self._send if mcoll.rank == 0 else None, self._recv, 0)

    def batch(self, times: int) -> float:
        """Seconds of ``times`` operations on this rank."""
        run = self._collective.run
        begin = perf_counter()
        for _ in range(times):
            run()
        return perf_counter() - begin

    def right(self, mark: int) -> bool:
        """True if this rank gets the data of a call whose input depends on ``mark``."""
        mcoll, size = self._mcoll, self._size
        if self._operation == "allreduce":
            values = np.arange(size // 8) % 1000 + mark
            self._send[:] = values + mcoll.rank
            self._recv[:] = -1
            reference = values * mcoll.size + sum(range(mcoll.size))
        elif self._operation == "allgather":
            pattern = np.arange(size) + mark
            self._send[:] = (pattern + 3 * mcoll.rank) % 251
            self._recv[:] = 255
            reference = np.concatenate([(pattern + 3 * r) % 251 for r in range(mcoll.size)])
        else:
            self._send[:] = (np.arange(self._send.size) + mark) % 251
            self._recv[:] = 255
            reference = (np.arange(mcoll.rank * size, (mcoll.rank + 1) * size) + mark) % 251
        self._collective.run()
        return bool(np.array_equal(self._recv, reference))

    def theory(self) -> theory.Traffic | None:
        """The traffic by the formulas; None for the library's own algorithm."""
        mcoll, form = self._mcoll, self.form
        if form == "library":
            return None
        t, config = mcoll.topology, mcoll.config
        k, radix = config.objects_of(t.locals), config.radix_of(t.locals)
        if self._operation == "allgather":
            return theory.allgather(form, self._size, t.nodes, t.locals, k, radix)
        if self._operation == "scatter":
            return theory.scatter(self._size, t.nodes, t.locals, radix)
        exact = not config.same_bits
        return theory.allreduce(form, self._size // 8, 8, t.nodes, k, radix, exact)
