"""Heat in a line as TPOD blocks, each with two neighbours; the result is checked.

    mpirun -n 2 python examples/tpod_line.py --blocks 3 --barrier neighbours

The blocks of a process share its cells and read those of their neighbours directly. Only the first
and the last block of a process exchange messages, with the next process.
"""

import argparse

import numpy as np
from heat_line import CELLS, STEPS, end, expected, start_values
from mpi4py import MPI

from runner.runtimes import tpod

LEFTWARD, RIGHTWARD = 1, 2  # tags


class Block(tpod.Task):
    """Cells ``first`` to ``last - 1`` of the process; partners are blocks of other processes."""

    def __init__(
        self,
        fields: list[np.ndarray],
        first: int,
        left: tpod.Partner | None,
        right: tpod.Partner | None,
    ) -> None:
        partners = [partner for partner in (left, right) if partner is not None]
        super().__init__(partners)
        self.fields = fields  # fields[step % 2] is read in a step
        self.first, self.last = first, first + CELLS
        self.left = -1 if left is None else partners.index(left)  # its place in peers; -1: none
        self.right = -1 if right is None else partners.index(right)
        self.sent = [np.zeros(1), np.zeros(1)]
        self.came = [np.zeros(1), np.zeros(1)]

    def step(self, step: int) -> None:  # compiled; a call that waits swaps the block out
        old, new = self.fields[step % 2], self.fields[(step + 1) % 2]
        if self.left >= 0:
            self.sent[0][0] = old[self.first]
            self.ctx.isend(self.sent[0], self.peers[self.left], LEFTWARD)
        if self.right >= 0:
            self.sent[1][0] = old[self.last - 1]
            self.ctx.isend(self.sent[1], self.peers[self.right], RIGHTWARD)
        if self.left >= 0:
            self.ctx.recv(self.came[0], self.peers[self.left], RIGHTWARD)
            old[self.first - 1] = self.came[0][0]
        if self.right >= 0:
            self.ctx.recv(self.came[1], self.peers[self.right], LEFTWARD)
            old[self.last] = self.came[1][0]
        for k in range(self.first, self.last):
            new[k] = 0.25 * old[k - 1] + 0.5 * old[k] + 0.25 * old[k + 1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", type=int, default=3, help="blocks of a process")
    parser.add_argument("--workers", type=int, default=1, help="threads that run blocks")
    tpod.add_arguments(parser)
    with tpod.errors_once("tpod_line"):  # a wrong option: one message, exit code 2
        options = tpod.parse_args(parser)
        config = tpod.from_arguments(options, workers=options.workers)
        comm, count = MPI.COMM_WORLD, options.blocks
        begin = comm.rank * count * CELLS
        whole = start_values(comm.size * count)
        own = whole[begin : begin + count * CELLS + 2]
        fields = [own.copy(), own.copy()]
        runtime = tpod.Tpod(comm, config)
        for number in range(count):
            left = right = None
            if number == 0 and comm.rank > 0:
                left = (comm.rank - 1, count - 1)
            if number == count - 1 and comm.rank < comm.size - 1:
                right = (comm.rank + 1, 0)
            block = Block(fields, 1 + number * CELLS, left, right)
            # Beside it in this process; each of them names this one, too.
            block.after = [n for n in (number - 1, number + 1) if 0 <= n < count]
            runtime.spawn(block)
        runtime.run(STEPS)
    right_part = expected(comm.size * count)[begin : begin + count * CELLS]
    runtime.finalize()
    end(comm, np.array_equal(fields[STEPS % 2][1:-1], right_part))


if __name__ == "__main__":
    main()
