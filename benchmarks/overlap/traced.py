"""A NAS kernel on a communicator that records the events of its timed part.

``mpirun -n RANKS python -m benchmarks.overlap.traced FILE KERNEL:CLASS...`` writes the events of
all ranks to FILE as JSON: for each kernel a list of ranks, for each rank a list of events

    ["compute", seconds]            CPU time of the rank between two calls of MPI
    ["send", rank, tag, bytes]      never waits
    ["receive", rank, tag, number]  waits for that message; ``number`` counts those of the same tag

Collectives are recorded as messages: sums in rounds (in round k with the ranks 2^k away), an
all-to-all as a message to every other rank, a reduction as messages to its root.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import thread_time
from typing import Any

from runner.programs.apps.common.mpi import run, single_threaded_blas

single_threaded_blas()

SUM_TAG, ALL_TAG, ROOT_TAG = -1, -2, -3
"""Tags of the messages of collectives; tags of the program are not negative."""
Event = list[Any]


class Recorder:
    """The events of a rank, while ``on``."""

    def __init__(self) -> None:
        self.on = False
        self.events: list[Event] = []
        self._numbers: Counter[tuple[int, int]] = Counter()
        self._begin = 0.0

    def start(self) -> None:
        self.on, self._begin = True, thread_time()

    def stop(self) -> None:
        self._computed()
        self.on = False

    def _computed(self) -> None:
        if self.on:
            self.events.append(["compute", thread_time() - self._begin])

    def send(self, rank: int, tag: int, size: int) -> None:
        if self.on:
            self.events.append(["send", rank, tag, size])

    def number(self, rank: int, tag: int) -> int:
        """The number of a receive that is started now."""
        self._numbers[rank, tag] += self.on
        return self._numbers[rank, tag] - 1

    def receive(self, rank: int, tag: int, number: int) -> None:
        if self.on:
            self.events.append(["receive", rank, tag, number])

    def __enter__(self) -> None:
        self._computed()

    def __exit__(self, *_: object) -> None:
        self._begin = thread_time()


class Request:
    """A request of a communicator; a receive is recorded where the program waits for it."""

    def __init__(self, request: Any, recorder: Recorder, receive: tuple[int, int, int]) -> None:
        self._request, self._recorder, self._receive = request, recorder, receive

    def Wait(self) -> None:
        with self._recorder:
            self._request.Wait()
            self._recorder.receive(*self._receive)


class Recording:
    """A communicator that records the calls that the kernels make; ``world``: ranks of the job."""

    def __init__(self, comm: Any, recorder: Recorder, world: Sequence[int]) -> None:
        self._comm, self._recorder, self._world = comm, recorder, world
        self.rank, self.size = comm.rank, comm.size

    def __getattr__(self, name: str) -> Any:
        if self._recorder.on:
            raise AssertionError(f"{name} in the timed part is not recorded")
        return getattr(self._comm, name)

    def Split(self, color: int, key: int) -> Recording:
        part = self._comm.Split(color, key)
        return Recording(part, self._recorder, part.allgather(self._world[self.rank]))

    def Send(self, buffer: Any, rank: int, tag: int) -> None:
        with self._recorder:
            self._comm.Send(buffer, rank, tag)
            self._recorder.send(self._world[rank], tag, buffer.nbytes)

    def Recv(self, buffer: Any, rank: int, tag: int) -> None:
        self.Irecv(buffer, rank, tag).Wait()

    def Irecv(self, buffer: Any, rank: int, tag: int) -> Request:
        source = self._world[rank]
        number = self._recorder.number(source, tag)
        return Request(self._comm.Irecv(buffer, rank, tag), self._recorder, (source, tag, number))

    def Allreduce(self, own: Any, total: Any, **more: Any) -> None:
        with self._recorder:
            self._comm.Allreduce(own, total, **more)
            step = 1
            while step < self.size:
                self._send(self.rank + step, SUM_TAG, own.nbytes)
                self._receive(self.rank - step, SUM_TAG)
                step *= 2

    def Alltoall(self, own: Any, others: Any) -> None:
        with self._recorder:
            self._comm.Alltoall(own, others)
            self._all([own.nbytes // self.size] * self.size)

    def Alltoallv(self, own: Any, others: Any) -> None:
        with self._recorder:
            self._comm.Alltoallv(own, others)
            buffer, (counts, _) = own
            self._all([int(count) * buffer.itemsize for count in counts])

    def Reduce(self, own: Any, total: Any, root: int = 0) -> None:
        with self._recorder:
            self._comm.Reduce(own, total, root=root)
            if self.rank != root:
                self._send(root, ROOT_TAG, own.nbytes)
            else:
                for rank in range(1, self.size):
                    self._receive(root + rank, ROOT_TAG)

    def _all(self, sizes: Sequence[int]) -> None:
        ranks = range(1, self.size)
        for n in ranks:
            self._send(self.rank + n, ALL_TAG, sizes[(self.rank + n) % self.size])
        for n in ranks:
            self._receive(self.rank - n, ALL_TAG)

    def _send(self, rank: int, tag: int, size: int) -> None:
        self._recorder.send(self._world[rank % self.size], tag, size)

    def _receive(self, rank: int, tag: int) -> None:
        source = self._world[rank % self.size]
        self._recorder.receive(source, tag, self._recorder.number(source, tag))


def events_of(comm: Any, kernel: str, problem_class: str) -> list[list[Event]]:
    """The events of every rank, on rank 0; raises AssertionError for a wrong result."""
    module = importlib.import_module(f"runner.programs.nas.{kernel}")
    recorder = Recorder()
    recording = Recording(comm, recorder, range(comm.size))
    program = module.build(recording, module.PROBLEMS[problem_class])
    program.prepare()
    comm.Barrier()
    recorder.start()
    program.solve()
    recorder.stop()
    checks = program.checks()
    assert comm.rank or all(check.right for check in checks), f"{kernel} is not verified"
    return comm.gather(recorder.events) or []


def main(comm: Any) -> int:
    file, *words = sys.argv[1:]
    traces = {word.partition(":")[0]: events_of(comm, *word.split(":")) for word in words}
    if comm.rank == 0:
        Path(file).write_text(json.dumps(traces))
    return 0


if __name__ == "__main__":
    run("traced", "single", main)
