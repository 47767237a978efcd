"""The stencil as chares of charm4py, one chare for each point.

It runs under the Python that has charm4py, and imports nothing else that is not Python's own:

    python charm_stencil.py LIBRARY 7:1000           one processing element (PE)
    python -m charmrun.start +p2 ++local charm_stencil.py LIBRARY 7:1000      two

``LIBRARY`` is ``chain.c`` as a shared library.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from pathlib import Path
from typing import Any

from charm4py import Array, Chare, Reducer, charm  # type: ignore[import-not-found]

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.metg import WIDTH, parse_cases, start_value, warm_up
from benchmarks.metg.chain import combined

chain: Any = None


class Point(Chare):  # type: ignore[misc]
    """One point; it runs task ``i`` once both neighbours' values of task ``i - 1`` are there."""

    def __init__(self, library: str) -> None:
        global chain
        if chain is None:
            chain = ctypes.CDLL(library).chain
            chain.restype, chain.argtypes = ctypes.c_double, [ctypes.c_double, ctypes.c_long]
        self.point = self.thisIndex[0]
        others = (self.point - 1, self.point + 1)
        self.neighbors = [
            (self.thisProxy[other], 1 - side)
            for side, other in enumerate(others)
            if 0 <= other < WIDTH
        ]

    def begin(self, steps: int, iterations: int, ready: Any, done: Any) -> None:
        """Set the values before the first task; all chares do this before any of them starts.

        ``ready`` gets that, ``done`` the points' values after their last tasks.
        """
        self.steps, self.iterations, self.done = steps, iterations, done
        self.task = 0
        self.own = start_value(self.point)
        # By parity of the task that uses them, then by side.
        values = [start_value(self.point - 1), start_value(self.point + 1)]
        self.values = [values, [0.0, 0.0]]
        self.arrived = [len(self.neighbors), 0]
        self.reduce(ready)

    def edge(self, half: int, side: int, value: float) -> None:
        """A neighbour's value for the next task of this parity."""
        self.values[half][side] = value
        self.arrived[half] += 1
        self.run_ready()

    def run_ready(self) -> None:
        """Run the tasks whose values are there; those of later tasks come by :meth:`edge`."""
        while self.task < self.iterations:
            half = self.task % 2
            if self.arrived[half] < len(self.neighbors):
                return
            self.arrived[half] = 0
            left, right = self.values[half]
            if self.point == 0:
                left = self.own
            if self.point == WIDTH - 1:
                right = self.own
            self.own = chain(combined(left, self.own, right), self.steps)
            self.task += 1
            if self.task < self.iterations:
                for proxy, side in self.neighbors:
                    proxy.edge(1 - half, side, self.own)
            else:
                self.contribute((self.point, self.own), Reducer.gather, self.done)


def main(arguments: list[str]) -> None:
    from charm4py import Future

    library, *words = arguments[1:]
    points = Array(Point, WIDTH, args=[library])
    walls, values = [], []

    def measure(steps: int, iterations: int) -> tuple[float, list[float]]:
        ready, done = Future(), Future()
        points.begin(steps, iterations, ready, done)
        ready.get()
        began = time.perf_counter()
        points.run_ready()
        last = done.get()
        return time.perf_counter() - began, [value for _, value in sorted(last)]

    for steps, iterations in parse_cases(words):
        measure(steps, warm_up(iterations))
        wall, last = measure(steps, iterations)
        walls.append(wall)
        values.append(last)
    print(json.dumps({"wall_s": walls, "values": values}), flush=True)
    charm.exit()


if __name__ == "__main__":
    charm.start(main)
