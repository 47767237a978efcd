"""The ring as plain MPI and as a graph of tasks."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from runner.programs.apps.common.mpi import agree
from runner.programs.apps.ring.options import Options
from runner.runtimes import tarragon

TAG = 7


def run_mpi(comm: Any, options: Options) -> tuple[float, bool]:
    """Seconds of the timed laps on this rank, and True if its messages were right.

    Rank 0 starts each lap (Cicotti 2011, Algorithm 15).
    """
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    buffer, back = np.zeros(options.size, np.uint8), np.zeros(options.size, np.uint8)
    right = True

    def laps(count: int) -> None:
        nonlocal right
        for lap in range(count):
            mark = lap % 251
            if comm.rank == 0:
                buffer[0] = mark
                request = comm.Irecv(back, before, TAG)
                comm.Send(buffer, after, TAG)
                request.Wait()
            else:
                comm.Recv(back, before, TAG)
                comm.Send(back, after, TAG)
            right = right and back[0] == mark

    laps(2)
    comm.Barrier()
    begin = perf_counter()
    laps(options.laps)
    return perf_counter() - begin, bool(right)


class RingTask(tarragon.Task):
    """Passes the message on when it arrives; task 0 counts the laps (Cicotti 2011, 2.5)."""

    def __init__(self, number: int, size: int, laps: int) -> None:
        super().__init__()
        self._laps = laps + (number == 0)
        """Times to run; task 0 runs once more, to absorb the last lap."""
        self._size = size
        self._first = number == 0
        self._message: tarragon.Message | None = None
        self.right = True
        self._mark = 0

    def vinit(self) -> None:
        self.state = tarragon.WAIT
        if self._first:
            self._message = tarragon.Message(self._size)
            self._message.array(np.uint8)[:] = 0
            self.state = tarragon.EXEC

    def vinject(self, message: tarragon.Message) -> None:
        self._message = message
        self.state = tarragon.EXEC

    def vexecute(self) -> None:
        message = self._message
        assert message is not None
        payload = message.array(np.uint8)
        if not self._first:
            self._mark += 1
        self.right = self.right and payload[0] == self._mark % 251
        self._laps -= 1
        if self._first:
            if self._laps == 0:
                self.state = tarragon.DONE
                return
            self._mark += 1
            payload[0] = self._mark % 251
        # The state first: the answer may arrive while this runs.
        self.state = tarragon.WAIT if self._laps else tarragon.DONE
        self.dependencies[0].put(message)

    def describe(self) -> str:
        return f"waits for the message, {self._laps} laps to go"


class CompiledRingTask(tarragon.CompiledTask):
    """The same as machine code: task 0 starts a lap, and checks the last one."""

    dtype = np.uint8

    def __init__(self, number: int, laps: int) -> None:
        super().__init__(steps=laps + 1)
        self.first = number == 0
        self.wrong = np.zeros(1, np.int64)
        """Messages that did not belong to their lap."""

    @property
    def right(self) -> bool:
        return not self.wrong[0]

    def connect(self, other: tarragon.Task | int, **attributes: Any) -> tarragon.Dependency:
        # Each lap ends with the message that starts the next one.
        return super().connect(other, delay=int(other == 0), **attributes)

    def compute(self, step: int) -> None:
        """Take the message of this lap and send it on."""
        lap = step - 1 if self.first else step
        output = self.outputs[step % 2]
        if lap >= 0:
            buffer = self.inputs[lap % 2]
            if buffer[0] != lap % 251:
                self.wrong[0] += 1
            for n in range(len(buffer)):
                output[n] = buffer[n]
        output[0] = step % 251


def run_tarragon(comm: Any, options: Options) -> tuple[float, bool]:
    """As :func:`run_mpi`, with tasks."""
    runtime = agree(comm, lambda: tarragon.Tarragon(comm, options.config))
    seconds, right = 0.0, True
    for laps in (2, options.laps):  # Once before the clock starts.
        graph: tarragon.VectorGraph[Any] = tarragon.VectorGraph(
            runtime,
            lambda number, laps=laps: _task(options, number, laps),  # type: ignore[misc]
            tarragon.IdentityMap(options.tasks),
        )
        graph.accept(tarragon.OneNeighborConnector(0, 1, periodic=True, max_size=options.size))
        runtime.graph_init(graph)
        runtime.graph_execute(graph)
        seconds = runtime.exec_time
        right = right and all(task.right for task in graph)
    runtime.finalize()
    return seconds, right


def _task(options: Options, number: int, laps: int) -> RingTask | CompiledRingTask:
    if options.variant == "compiled":
        return CompiledRingTask(number, laps)
    return RingTask(number, options.size, laps)
