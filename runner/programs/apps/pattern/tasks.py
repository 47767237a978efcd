"""A master that hands out tasks: small requests, results of the given size."""

from __future__ import annotations

from typing import Any

import numpy as np

from runner.programs.apps.pattern.options import Options
from runner.programs.apps.pattern.work import Message, Work

REQUEST, TASK, RESULT = 1, 2, 3
"""Message tags."""
NOTHING = -1
"""Number that means "no task"."""


class MasterWorker:
    """Rank 0 hands out tasks, as many in a step as there are workers.

    A worker asks for a task with the number of the one it has done; the result of that one follows.
    The lengths of the tasks are spread evenly from 1/2 to 3/2 of the mean, with an imbalance F from
    (1 - F) / 2 to (3 + F) / 2. The order comes from the seed. So the total work is the same in each
    run; its distribution is not.
    """

    def __init__(self, comm: Any, options: Options, work: Work) -> None:
        self._comm, self._work = comm, work
        self.lengths = lengths(options, comm.size - 1)
        workers = range(1, comm.size)
        self._results = (
            {worker: Message(options.size, worker, is_outgoing=False) for worker in workers}
            if comm.rank == 0
            else {comm.rank: Message(options.size, comm.rank, is_outgoing=True)}
        )
        self._counts = np.zeros(len(self.lengths), np.int64)

    def run(self, first: int, end: int) -> None:
        workers = self._comm.size - 1
        if self._comm.rank == 0:
            self._master(range(first * workers, end * workers))
        else:
            self._worker()

    def _master(self, tasks: range) -> None:
        from mpi4py import MPI

        status = MPI.Status()
        request, answer = np.zeros(1, np.int64), np.zeros(1, np.int64)
        buffers = {worker: message.buffer for worker, message in self._results.items()}
        receive, send, waiting = self._comm.Recv, self._comm.Send, iter(tasks)
        busy = len(buffers)
        while busy:
            receive(request, MPI.ANY_SOURCE, REQUEST, status)
            worker, task = status.Get_source(), int(request[0])
            if task != NOTHING:
                receive(buffers[worker], worker, RESULT)
                self._results[worker].check(task)
                self._counts[task] += 1
            answer[0] = next(waiting, NOTHING)
            busy -= answer[0] == NOTHING
            send(answer, worker, TASK)

    def _worker(self) -> None:
        task = np.full(1, NOTHING, np.int64)
        result = self._results[self._comm.rank]
        buffer, send, receive = result.buffer, self._comm.Send, self._comm.Recv
        while True:
            send(task, 0, REQUEST)
            if task[0] != NOTHING:
                send(buffer, 0, RESULT)
            receive(task, 0, TASK)
            if task[0] == NOTHING:
                return
            self._work.do(int(self.lengths[task[0]]))
            result.stamp(int(task[0]))

    def wrong(self) -> str:
        if self._comm.rank:
            return ""
        if (self._counts != 1).any():
            return "tasks that were done not once"
        return "".join({message.wrong() for message in self._results.values()})


def lengths(options: Options, workers: int) -> Any:
    """Calls of the kernel of every task, including those of the first, untimed step."""
    spread = (1 + options.imbalance) / 2
    count = (options.steps + 1) * workers
    factors = np.linspace(1 - spread, 1 + spread, count)
    order = np.random.default_rng(options.seed).permutation(count)
    return np.rint(options.work * factors[order]).astype(np.int64)
