"""``mpirun -n RANKS python -m runner.micro OPERATION --size BYTES`` (``--help`` lists options)."""

from __future__ import annotations

import statistics
import sys
from typing import Any

from runner.apps.common_errors import AppUsageError
from runner.apps.common_mpi import run, single_threaded_blas
from runner.apps.common_options import OptionParser, positive
from runner.apps.common_report import json_line

single_threaded_blas()

BATCHES = 20


def main(comm: Any, words: list[str]) -> int:
    """Time one operation at one size; the figure is seconds per operation, median of batches."""
    from runner.micro.operations import OPERATIONS, pingpong

    parser = OptionParser("runner.micro", "Time one MPI operation.")
    parser.add_argument("operation", choices=sorted(OPERATIONS))
    parser.add_argument("--size", type=positive, default=8, help="bytes")
    parser.add_argument("--count", type=positive, default=2000, help="operations in all")
    parser.add_argument(
        "--buffers", type=positive, default=1, help="pingpong: buffers used in turn (default 1)"
    )
    if {"-h", "--help"} & set(words):
        if comm.rank == 0:
            print(parser.format_help())
        return 0
    given = parser.parse_args(words)
    if given.operation == "pingpong" and comm.size < 2:
        raise AppUsageError("pingpong needs at least 2 ranks")
    if given.buffers > 1 and given.operation != "pingpong":
        raise AppUsageError(f"--buffers is for pingpong only, not for {given.operation}")
    if given.operation == "pingpong":
        work = pingpong(comm, given.size, given.buffers)
    else:
        work = OPERATIONS[given.operation](comm, given.size)
    each = max(given.count // BATCHES, 1)
    times = _timed(comm, work, each)
    if comm.rank == 0:
        _print(given, comm.size, times, each)
    return 0


def _timed(comm: Any, work: Any, each: int) -> list[float]:
    """Seconds of each batch: those of the slowest rank, on every rank."""
    from mpi4py import MPI

    work(each)
    times = []
    for _ in range(BATCHES):
        comm.Barrier()
        began = MPI.Wtime()
        work(each)
        times.append(MPI.Wtime() - began)
    return [max(batch) for batch in zip(*comm.allgather(times), strict=True)]


def _print(given: Any, ranks: int, times: list[float], each: int) -> None:
    per_call = statistics.median(times) / each
    print(f"{given.operation} {given.size} bytes, {ranks} ranks: {per_call * 1e6:.3f} us")
    result = {
        "benchmark": given.operation,
        "size": given.size,
        "ranks": ranks,
        "buffers": given.buffers,
        "count": each * BATCHES,
        "us": per_call * 1e6,
        "seconds": sum(times),
        "batches_us": [t / each * 1e6 for t in times],
    }
    print(json_line(result))


if __name__ == "__main__":
    run("runner.micro", "single", lambda comm: main(comm, sys.argv[1:]))
