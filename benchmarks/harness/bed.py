"""The testbed of a benchmark: brought up as each cell needs it, and down at the end."""

from __future__ import annotations

from types import TracebackType

from runner import testbed as tb
from runner.lock import MachineLock
from runner.testbed.measure import run_time

RATE_BPS = 1_000_000_000


class Bed:
    """The default testbed with links of 1 Gbit/s; needs root. Nothing is up before :meth:`up`."""

    def __init__(self) -> None:
        self._is: tuple[int, float] | None = None
        self._line = 0

    def __enter__(self) -> Bed:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is is not None:
            tb.down(tb.DEFAULT_NAME)

    def up(self, nodes: int, latency_ms: float) -> str:
        """The cluster of so many nodes; one node is this machine, and needs no testbed.

        A testbed with other properties is replaced, under the machine lock.
        """
        if nodes == 1:
            return "local"
        if self._is != (nodes, latency_ms):
            with MachineLock("exclusive"):
                tb.down(tb.DEFAULT_NAME)
                self._is = (nodes, latency_ms)
                self._line = tb.up(tb.DEFAULT_NAME, nodes, latency_ms / 1e3, RATE_BPS).line.pid
        return "testbed"

    def line_s(self) -> float:
        """CPU seconds of the delay line so far; 0 on one node."""
        return run_time(self._line) if self._is is not None else 0.0
