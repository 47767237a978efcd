"""``mpirun -n RANKS python -m runner.programs.micro OPERATION --size BYTES`` (see ``--help``)."""

from __future__ import annotations

import itertools
import sys
from typing import Any

from runner.message_sizes import BATCHES, DEFAULT_RANGE, calls, median, sizes
from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.mpi import agree, run, single_threaded_blas
from runner.programs.apps.common.options import OptionParser, positive
from runner.programs.apps.common.report import json_line

single_threaded_blas()

THREAD_LEVEL = "--thread-level"
LEVELS = ("single", "funneled", "serialized", "multiple")
"""Thread levels in the order of MPI's numbers."""
USE = """
Operations:
{operations}

Examples:
  mpirun -n 2 python -m runner.programs.micro pingpong --size 4k
  mpirun -n 2 python -m runner.programs.micro bw --size 64k,1m
  mpirun -n 4 python -m runner.programs.micro allreduce    (8 bytes to 1 MiB)

MPI starts with the thread level of an ordinary program (single). Some libraries
serve collectives differently with --thread-level multiple.

The last line printed is JSON: us = median time of one operation at each size,
seconds = time of all of them (what autotune compares).
"""


def build_parser() -> OptionParser:
    parser = OptionParser("python -m runner.programs.micro", "Time one MPI operation.")
    parser.add_argument(
        "operation", nargs="?", metavar="OPERATION", help="operation to time (see below)"
    )
    parser.add_argument(
        "--size",
        type=sizes,
        metavar="BYTES",
        default=None,
        help="message sizes in bytes: 4096, 4k, a list 8,4k,1m, or a range 8:1m in factors of 4; "
        f"default {DEFAULT_RANGE}",
    )
    parser.add_argument("--count", type=positive, default=None, metavar="N",
        help="number of operations at each size; default 2000, fewer from 32 KiB on")  # fmt: skip
    parser.add_argument("--buffers", type=positive, default=1, metavar="B",
        help="pingpong: number of buffers used in turn; default 1")  # fmt: skip
    parser.add_argument(THREAD_LEVEL, choices=LEVELS, default=LEVELS[0], metavar="LEVEL",
        help=f"with which MPI starts: {', '.join(LEVELS)}; default single")  # fmt: skip
    parser.add_argument("--mcoll", metavar="FORM",
        help="time this algorithm of runner.runtimes.intranode.mcoll instead of MPI's own: auto, "
        "bruck, scatter-bruck (allreduce only), ring, rd; for allgather and allreduce")  # fmt: skip
    parser.add_argument("--mcoll-objects", type=positive, default=None, metavar="K",
        help="senders on each node with --mcoll; default all ranks")  # fmt: skip
    return parser


def thread_level(words: list[str]) -> str:
    """The thread level that MPI must be started with; :func:`_parse` refuses an unknown one."""
    level = LEVELS[0]
    for word, following in itertools.pairwise([*words, ""]):
        name, sign, value = word.partition("=")
        if name == THREAD_LEVEL:
            level = value if sign else following
    return level if level in LEVELS else LEVELS[0]


def main(comm: Any, words: list[str]) -> int:
    """Time one operation at some sizes; returns the exit code.

    Raises :class:`AppUsageError` on all ranks alike.
    """
    options = agree(comm, lambda: _parse(words, comm.size))
    if options.help:
        if comm.rank == 0:
            print(help_text())
        return 0
    rival = agree(comm, lambda: _rival(comm, options)) if options.mcoll else None
    points = [_measure(comm, options, size, rival) for size in options.size]
    if comm.rank == 0:
        _print(options, comm.size, points, _library_level())
    return 0


def _rival(comm: Any, options: Any) -> Any:
    from runner.programs.micro.multi_object import Rival

    return Rival(comm, options.operation, options.mcoll, options.mcoll_objects or 0)


def _library_level() -> str:
    """The thread level that the library provides, which may differ from the requested one."""
    from mpi4py import MPI

    levels = (
        MPI.THREAD_SINGLE,
        MPI.THREAD_FUNNELED,
        MPI.THREAD_SERIALIZED,
        MPI.THREAD_MULTIPLE,
    )
    return LEVELS[levels.index(MPI.Query_thread())]


def help_text() -> str:
    from runner.programs.micro.operations import OPERATIONS

    lines = [f"  {name:<15} {kind.meaning}" for name, kind in OPERATIONS.items()]
    return build_parser().format_help() + USE.format(operations="\n".join(lines))


def _parse(words: list[str], ranks: int) -> Any:
    from runner.programs.micro.operations import OPERATIONS

    options = build_parser().parse_args(words)
    if options.help:
        return options
    if options.operation not in OPERATIONS:
        what = (
            f"operation {options.operation} is not known"
            if options.operation
            else "no operation given"
        )
        raise AppUsageError(
            f"{what}; expected one of {', '.join(OPERATIONS)}", code="micro.operation_unknown"
        )
    kind = OPERATIONS[options.operation]
    if ranks < kind.ranks:
        raise AppUsageError(
            f"{options.operation} needs at least {kind.ranks} ranks; start it with mpirun -n 2",
            code="micro.ranks",
        )
    if options.mcoll_objects and not options.mcoll:
        raise AppUsageError("--mcoll-objects needs --mcoll", code="micro.not_applicable")
    if options.buffers > 1 and options.operation != "pingpong":
        raise AppUsageError(
            f"--buffers is for pingpong only, not for {options.operation}",
            code="micro.not_applicable",
        )
    if not kind.has_size:
        options.size = [0]
    options.size = options.size or sizes(DEFAULT_RANGE)
    return options


def _measure(comm: Any, options: Any, size: int, rival: Any = None) -> dict[str, Any]:
    """Times of one size: ``us`` per operation, ``best_us`` and ``seconds``.

    ``us`` is the median of the batches, each timed by its slowest rank; ``best_us`` is that of the
    fastest batch; ``seconds`` is the time of all batches.
    """
    from runner.programs.micro.operations import OPERATIONS
    from runner.programs.micro.point_to_point import pingpong

    kind = OPERATIONS[options.operation]
    is_window = options.buffers > 1
    work = pingpong(comm, size, options.buffers) if is_window else (rival or kind).build(comm, size)
    each = max((options.count or calls(size)) // BATCHES, 1)
    times = _batch_times(comm, work, each)
    us = median(times) / each * 1e6
    point = {
        "size": size,
        "count": each * BATCHES,
        "us": us,
        "best_us": min(times) / each * 1e6,
        "seconds": sum(times),
        "batches_us": [t / each * 1e6 for t in times],
    }
    return point | ({"mb_s": kind.transfers * size / us} if kind.transfers else {})


def _batch_times(comm: Any, work: Any, each: int) -> list[float]:
    """Seconds of each batch, those of the slowest rank; the same list on every rank."""
    from mpi4py import MPI

    work(each)
    times = []
    for _ in range(BATCHES):
        comm.Barrier()
        began = MPI.Wtime()
        work(each)
        times.append(MPI.Wtime() - began)
    return [max(batch) for batch in zip(*comm.allgather(times), strict=True)]


def _print(options: Any, ranks: int, points: list[dict[str, Any]], level: str) -> None:
    rates = "mb_s" in points[0]
    print(f"{options.operation}, {ranks} ranks")
    print(f"{'bytes':>10} {'calls':>8} {'us':>12}" + (f" {'MB/s':>10}" if rates else ""))
    for p in points:
        rate = f" {p['mb_s']:>10.1f}" if rates else ""
        print(f"{p['size']:>10} {p['count']:>8} {p['us']:>12.3f}{rate}")
    head = {"benchmark": options.operation, "ranks": ranks, "buffers": options.buffers}
    head["thread_level"] = level
    # A single size is also printed at the top level, so that a metric such as json:us finds it.
    single = points[0] if len(points) == 1 else {}
    total = sum(p["seconds"] for p in points)
    print(json_line({**head, **single, "seconds": total, "sizes": points}))


if __name__ == "__main__":
    run("runner.programs.micro", thread_level(sys.argv[1:]), lambda comm: main(comm, sys.argv[1:]))
