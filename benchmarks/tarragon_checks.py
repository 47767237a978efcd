"""What Cicotti's thesis shows of graphs of tasks, looked for here: one table for each claim.

    python -m benchmarks.tarragon_checks [--place node|testbed] [--only tasks ...] [--blocks 8]

A table has the lines of one claim, all on two cores: command lines, or settings of an application
in its space.  They run in blocks of random order, guard on; the speed-up is the first line's time
over the line's, with a 95 % interval.  On the testbed every line has the larger eager limit of TCP,
so that no form loses by the library's default alone.  Needs a machine without other work.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.checks import Check, held, one, rows_of, run_checks, setting, words
from benchmarks.common import run_benchmark
from benchmarks.program_cells import Place


def grids(count: int) -> str:
    """Parts of a process's block: y and z as equal as can be, and x from 2048 on."""
    x = 2 if count >= 2048 else 1
    y = 2 ** ((count // x).bit_length() // 2)
    return f"--ranks-per-process {count} --local-grid {x}x{y}x{count // x // y}"


JACOBI = "--input face --variant"
MEMORY = "--input large --variant"
GRAPH = "tarragon --priority edges"
RING = "--laps 300 --size"
NW, LU = "needleman-wunsch", "sparse-lu"
BIG: dict[str, str | int] = {"rows": 512, "columns": 512}
FINE: dict[str, str | int] = {"rows": 128, "columns": 64}
TWO: dict[str, str | int] = {"threads": "service", "workers": 2}

CHECKS = (
    Check(
        "tasks",
        "speed rises, has a plateau and falls over the number of tasks of a core",
        (
            words("jacobi3d", "flat MPI", f"{JACOBI} mpi"),
            *(
                words("jacobi3d", f"{n} tasks", f"{JACOBI} {GRAPH} {grids(n)}")
                for n in (1, 2, 4, 8, 16, 64, 256, 1024, 2048)
            ),
        ),
    ),
    Check(
        "memory",
        "split phase is not faster than BSP for a stencil bound by memory, the graph is not slower",
        (
            words("jacobi3d", "flat MPI", f"{MEMORY} mpi"),
            words("jacobi3d", "split phase", f"{MEMORY} overlap"),
            *(words("jacobi3d", f"{n} tasks", f"{MEMORY} {GRAPH} {grids(n)}") for n in (4, 16)),
        ),
    ),
    *(
        Check(
            f"padding-{pad}",
            "the speed-up follows the share of communication",
            (
                words("jacobi3d", "flat MPI", f"{JACOBI} mpi --padding {pad}"),
                words("jacobi3d", "split phase", f"{JACOBI} overlap --padding {pad}"),
                *(
                    words("jacobi3d", f"{n} tasks", f"{JACOBI} {GRAPH} --padding {pad} {grids(n)}")
                    for n in (2, 4, 8)
                ),
            ),
        )
        for pad in (1, 2, 4, 8, 16)
    ),
    Check(
        "threads",
        "fine tasks with several threads collapse; panels or single threads repair it",
        (
            setting(NW, "small", variant="mpi", **BIG),
            setting(NW, "small", variant="block", **BIG),
            setting(NW, "small", variant="block", **FINE),
            setting(NW, "small", variant="panel", **FINE),
            setting(NW, "small", variant="block", **TWO, **FINE),
            setting(NW, "small", variant="panel", **TWO, **FINE),
            setting(NW, "small", variant="block", **TWO, **BIG),
        ),
    ),
    Check(
        "priorities",
        "priorities are neutral when there is little parallelism",
        (
            setting(NW, "default", variant="panel", **BIG),
            setting(NW, "default", variant="panel", priority="edges", **BIG),
            setting(NW, "default", variant="panel", priority="wavefront", **BIG),
        ),
    ),
    Check(
        "tags",
        "tags gain a little, aggregation nothing",
        (
            setting(LU, "poisson", variant="tarragon"),
            setting(LU, "poisson", variant="tarragon", tagging=1),
            setting(LU, "poisson", variant="tarragon", aggregation=1),
            setting(LU, "poisson", variant="tarragon", priority="edges"),
        ),
    ),
    *(
        Check(
            f"hand-over-{size}",
            "within a process short messages are handed over slower than by MPI, long ones faster",
            (
                words("ring", "MPI, two processes", f"{RING} {size} --variant mpi"),
                words("ring", "in process", f"{RING} {size} --tasks 4 --variant tarragon", 1),
                words("ring", "compiled", f"{RING} {size} --tasks 4 --variant compiled", 1),
            ),
        )
        for size in (8, 4096, 65536, 1048576)
    ),
)


def rows_for(check: Check, place: Place, given: argparse.Namespace) -> list[dict[str, Any]]:
    return rows_of(check, held(check, place, given, one))


def main() -> int:
    return run_checks("tarragon_checks", __doc__, CHECKS, rows_for)


if __name__ == "__main__":
    run_benchmark(main)
