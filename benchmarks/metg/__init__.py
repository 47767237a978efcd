"""The stencil of ``benchmarks.mate_metg`` for each runtime: the same tasks, started in other ways.

A line of ``WIDTH`` points. Task ``i`` of a point combines the values of task ``i - 1`` of the point
and its two neighbours, and puts the result through a chain of dependent operations (see
:mod:`benchmarks.metg.chain`). The end of the line takes the place of its missing neighbour.

Every program takes words ``STEPS:ITERATIONS``: the length of the chain, and the number of
tasks of each point. Process 0 prints one JSON line: ``wall_s`` with one time in seconds for each
word, and ``values`` with the points' values after the last task, exact to the last bit.
"""

WIDTH = 8
"""Number of points."""


def start_value(point: int) -> float:
    """The value of a point before its first task, between 0 and 1."""
    return 0.1 + 0.1 * point


def warm_up(iterations: int) -> int:
    """Tasks of each point that run before the time is taken."""
    return max(2, iterations // 10)


def parse_cases(words: list[str]) -> list[tuple[int, int]]:
    """``["7:1000"]`` as ``[(7, 1000)]``: steps and iterations of each measurement."""
    return [(int(steps), int(iterations)) for steps, iterations in (w.split(":") for w in words)]
