"""``mpirun -n RANKS python -m runner.programs.micro.probe --points POINTS``: many operations in one
launch.

A calibration asks how the primitives of a machine respond to a setting.  Starting MPI takes far
longer than timing one operation, so one launch times many points: operations, each at some sizes.
"""

from __future__ import annotations

import sys
from typing import Any

from runner.message_sizes import Points, median
from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.mpi import agree, run, single_threaded_blas
from runner.programs.apps.common.options import OptionParser, above_zero
from runner.programs.apps.common.report import json_line

single_threaded_blas()

POINTS_FORM = "pingpong:8/4096+bcast:1024+barrier:0"
BATCHES, FEW = 7, 3
"""Number of batches for the calls of a point, and for a point whose calls take long; the figure is
the median batch."""
_LONG = 4
"""A point whose calls take this multiple of its time gets few batches."""
MOST_CALLS = 2000
"""Largest number of calls of a batch."""


def read_points(text: str) -> Points:
    """The points of ``pingpong:8/4096+barrier:0``; raises ValueError for anything else."""
    from runner.programs.micro.operations import OPERATIONS

    points: Points = {}
    for part in text.split("+"):
        operation, colon, size_words = part.partition(":")
        words = size_words.split("/")
        right = colon and all(word.isascii() and word.isdigit() for word in words)
        if not right or operation in points:
            raise ValueError(f"expected points such as {POINTS_FORM}, not {text!r}")
        if operation not in OPERATIONS:
            raise ValueError(
                f"operation {operation} is not known; expected one of {', '.join(OPERATIONS)}"
            )
        points[operation] = [int(word) for word in words]
    return points


def build_parser() -> OptionParser:
    parser = OptionParser(
        "python -m runner.programs.micro.probe", "Time many MPI operations in one launch."
    )
    parser.add_argument("--points", default="", metavar="POINTS",
        help=f"operations with their message sizes in bytes: {POINTS_FORM}")  # fmt: skip
    parser.add_argument("--each", type=above_zero, default=3.0, metavar="MS",
        help="milliseconds for each point, about; default 3")  # fmt: skip
    return parser


def main(comm: Any, words: list[str]) -> int:
    """Time the points; returns the exit code.  Raises :class:`AppUsageError` on all ranks alike."""
    options = agree(comm, lambda: _parse(words, comm.size))
    if options.help:
        if comm.rank == 0:
            print(build_parser().format_help())
        return 0
    rows = [
        _measure(comm, operation, size, options.each / 1e3)
        for operation, sizes in options.points.items()
        for size in sizes
    ]
    if comm.rank == 0:
        seconds = sum(row["us"] for row in rows) / 1e6
        print(json_line({"ranks": comm.size, "points": rows, "seconds": seconds}))
    return 0


def _parse(words: list[str], ranks: int) -> Any:
    from runner.programs.micro.operations import OPERATIONS

    options = build_parser().parse_args(words)
    if options.help:
        return options
    try:
        options.points = read_points(options.points)
    except ValueError as problem:
        raise AppUsageError(f"--points: {problem}", code="micro.operation_unknown") from None
    for operation in options.points:
        if ranks < OPERATIONS[operation].ranks:
            raise AppUsageError(
                f"{operation} needs at least {OPERATIONS[operation].ranks} ranks; start it with "
                "mpirun -n 2",
                code="micro.ranks",
            )
    return options


def _measure(comm: Any, operation: str, size: int, each_s: float) -> dict[str, Any]:
    """One point: ``us`` per call, the median of the batches, each timed by its slowest rank.

    The ranks agree on the number of calls by the time of one call after a first one, which opens
    connections. In calls with a root each rank is the root in turn: with a fixed root they overlap,
    and a broadcast over a slow network would seem to take no time.
    """
    from mpi4py import MPI

    from runner.programs.micro.operations import OPERATIONS

    kind = OPERATIONS[operation]
    how: dict[str, Any] = {"turns": True} if kind.has_root else {}
    if kind.pair:
        how["peer"] = comm.size - 1  # On another node, if there are several.
    work = kind.build(comm, size, **how)
    work(1)
    comm.Barrier()
    began = MPI.Wtime()
    work(1)
    call_s = max(comm.allreduce(MPI.Wtime() - began, op=MPI.MAX), 1e-7)
    batches = BATCHES if BATCHES * call_s <= _LONG * each_s else FEW
    calls = int(min(max(each_s / batches / call_s, 1), MOST_CALLS))
    if kind.has_root:
        calls = -(-calls // comm.size) * comm.size  # Each rank is the root equally often.
    times = []
    for _ in range(batches):
        comm.Barrier()
        began = MPI.Wtime()
        work(calls)
        times.append(MPI.Wtime() - began)
    slowest = [max(batch) for batch in zip(*comm.allgather(times), strict=True)]
    us = median(slowest) / calls * 1e6
    return {"operation": operation, "size": size, "us": us, "calls": calls * batches}


if __name__ == "__main__":
    run("runner.programs.micro.probe", "single", lambda comm: main(comm, sys.argv[1:]))
