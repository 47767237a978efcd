"""Compiled tasks that mix numbers over any edges; as a program, many such graphs over MPI."""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np

from runner.runtimes import tarragon
from runner.runtimes.tarragon import Tarragon

Edges = dict[tuple[int, int], int]
"""Source and target -> delay."""


class Mix(tarragon.CompiledTask):
    """Mixes what arrives into its own number, and sends it on."""

    dtype = np.int64

    def __init__(self, number: int, steps: int, delays: dict[int, int]) -> None:
        super().__init__(steps)
        self._delays = delays
        self.value = np.array([number + 1], np.int64)

    def vinit(self) -> None:
        self.delays = np.array([self._delays[source] for source in self.sources], np.int64)
        self.fan_out = len(self.targets)
        super().vinit()

    def compute(self, step: int) -> None:
        total = self.value[0]
        for n in range(len(self.delays)):
            number = step - self.delays[n]
            if number >= 0:
                total += (n + 3) * self.inputs[2 * n + number % 2][0]
        self.value[0] = total % 1_000_003
        for n in range(self.fan_out):
            self.outputs[2 * n + step % 2][0] = self.value[0]


def graph_of(runtime: Tarragon, tasks: int, steps: int, edges: Edges) -> Any:
    """The graph with these edges."""
    delays: list[dict[int, int]] = [{} for _ in range(tasks)]
    for (source, target), delay in edges.items():
        delays[target][source] = delay
    graph = tarragon.VectorGraph(
        runtime, lambda number: Mix(number, steps, delays[number]), tarragon.IdentityMap(tasks)
    )
    for (source, target), delay in edges.items():
        if graph.is_local(source):
            graph.task(source).connect(target, max_size=8, delay=delay)
    return graph


def expected(tasks: int, steps: int, edges: Edges) -> list[int]:
    """The values, step by step; edges without delay lead to higher numbers."""
    values = [number + 1 for number in range(tasks)]
    sent: list[list[int]] = [[] for _ in range(tasks)]
    for step in range(steps):
        for task in range(tasks):
            total = values[task]
            sources = sorted(source for source, target in edges if target == task)
            for n, source in enumerate(sources):
                number = step - edges[source, task]
                if number >= 0:
                    total += (n + 3) * sent[source][number]
            values[task] = total % 1_000_003
            sent[task].append(values[task])
    return values


def main() -> int:
    """Run graphs drawn at random; returns 1 if a result is wrong."""
    from mpi4py import MPI

    runtime = Tarragon(MPI.COMM_WORLD)
    for seed in range(int(sys.argv[1])):
        dice = random.Random(seed)
        tasks, steps = dice.randint(MPI.COMM_WORLD.size, 9), dice.randint(0, 6)
        edges: Edges = {
            (a, b): dice.randint(0, 1) if a < b else 1
            for a in range(tasks)
            for b in range(tasks)
            if a != b and dice.random() < 0.4
        }
        graph = graph_of(runtime, tasks, steps, edges)
        runtime.graph_init(graph)
        runtime.graph_execute(graph)
        right = expected(tasks, steps, edges)
        if any(int(task.value[0]) != right[task.id] for task in graph):
            print(f"seed {seed} is wrong", flush=True)
            return 1
    runtime.finalize()
    return 0


if __name__ == "__main__":
    sys.exit(main())
