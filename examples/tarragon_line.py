"""Heat in a line as a graph of Tarragon tasks, each with two neighbours; the result is checked.

    mpirun -n 2 python examples/tarragon_line.py --tasks 6

A task is a part of the line. In each step it takes the edge cells of its neighbours, and sends its
own. Which buffer belongs to which neighbour is looked up in ``sources`` and ``targets``.
"""

import argparse

import numpy as np
from heat_line import CELLS, STEPS, end, expected, start_values
from mpi4py import MPI

from runner.runtimes import tarragon

LEFT, RIGHT = 0, 1


class Part(tarragon.GridTask):
    """Cells 1 to CELLS of its arrays; cells 0 and CELLS + 1 are copies of the neighbours'."""

    def __init__(self, number: int, tasks: int) -> None:
        super().__init__(STEPS)
        first = number * CELLS
        old = start_values(tasks)[first : first + CELLS + 2].copy()
        self.cells = [old, old.copy()]  # cells[step % 2] is read in a step
        self.came = [-1, -1]  # numbers of the inputs from the left and the right; -1: none
        self.sent = [-1, -1]

    def vinit(self) -> None:
        """Called when the buffers exist; compiled code reads the attributes after it."""
        super().vinit()
        for side, other in ((LEFT, self.id - 1), (RIGHT, self.id + 1)):
            if other in self.sources:
                self.came[side] = self.sources.index(other)
                self.sent[side] = self.targets.index(other)

    def compute(self, step: int) -> None:  # compiled
        old, new = self.cells[step % 2], self.cells[(step + 1) % 2]
        if step > 0:  # the messages of the step before
            if self.came[0] >= 0:
                old[0] = self.inputs[2 * self.came[0] + (step - 1) % 2][0]
            if self.came[1] >= 0:
                old[len(old) - 1] = self.inputs[2 * self.came[1] + (step - 1) % 2][0]
        for k in range(1, len(old) - 1):
            new[k] = 0.25 * old[k - 1] + 0.5 * old[k] + 0.25 * old[k + 1]
        if self.sent[0] >= 0:
            self.outputs[2 * self.sent[0] + step % 2][0] = new[1]
        if self.sent[1] >= 0:
            self.outputs[2 * self.sent[1] + step % 2][0] = new[len(new) - 2]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=6)
    tarragon.add_arguments(parser)
    with tarragon.errors_once("tarragon_line"):  # a wrong option: one message, exit code 2
        options = tarragon.parse_args(parser)
        config = tarragon.from_arguments(options)
        comm = MPI.COMM_WORLD
        runtime = tarragon.Tarragon(comm, config)
        numbers = tarragon.IdentityMap(options.tasks)
        graph = tarragon.VectorGraph(runtime, lambda number: Part(number, options.tasks), numbers)
        for part in graph:
            for other in (part.id - 1, part.id + 1):
                if numbers.in_map(other):
                    part.connect(other, max_size=8)  # one cell
        runtime.graph_init(graph)
        runtime.graph_execute(graph)
    whole = expected(options.tasks).reshape(options.tasks, CELLS)
    own = all(np.array_equal(part.cells[STEPS % 2][1:-1], whole[part.id]) for part in graph)
    runtime.finalize()
    end(comm, own)


if __name__ == "__main__":
    main()
