"""The counts of one rank, read from its file (format 2, written by native/counts.c)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from runner.errors import RunnerError
from runner.files import MIB, read_bytes
from runner.files.paths import entries
from runner.trace.schema import SIZE_BINS

FORMAT = "autotune-trace 1"
_MOST_BYTES = 256 * MIB
"""Limit for the counts of one rank."""
OPERATIONS = (
    *("send", "recv", "wait", "barrier", "bcast", "scatter", "reduce", "gather", "allgather"),
    *("allreduce", "alltoall", "reduce_scatter", "scan", "neighbor", "rma", "other"),
)
_LINES = {"rank", "size", "host", "wall_ns", "outside", "commutes", "p2p_sizes", "coll_sizes"}


@dataclass
class OpCounts:
    """One kind of operation on one rank: ``bytes`` passed to it, ``ns`` spent in it.

    ``comm_sizes`` is the sum of the sizes of the communicators.
    """

    calls: int = 0
    nonblocking: int = 0
    bytes: int = 0
    comm_sizes: int = 0
    ns: int = 0


class RowKind(NamedTuple):
    """The common properties of the calls in one row.

    ``size_bin`` is a bin of schema.SIZE_BINS. ``comm_size`` is 0 if no communicator matters.
    ``far``: the receiver, or a part of the communicator, is on another node. Receives, waits,
    one-sided and other calls have neither size nor partners: 0, 0 and False.
    """

    operation: str
    nonblocking: bool
    size_bin: int
    comm_size: int
    far: bool


class RowSums(NamedTuple):
    """The calls of one row on one rank: ``ns`` spent in them; for ``wait``, ``bytes`` are requests.

    The calls of ``send`` are messages. A call without a message (to MPI_PROC_NULL, or the start of
    persistent requests) adds only its time, to a row of size 0.
    """

    calls: int
    bytes: int
    ns: int


class RoundSums(NamedTuple):
    """The rounds of one kind on one rank (:mod:`runner.trace.steps`): ``ns`` outside of MPI in
    them, in the ``longest``, and the sum of the ``squares`` over rounds."""

    rounds: int
    ns: int
    longest: int
    squares: float


@dataclass
class RankCounts:
    """All counts of one rank.

    ``to`` maps a receiver (world rank) to (messages, bytes). ``outside`` counts messages to
    processes outside MPI_COMM_WORLD. ``timed_calls`` maps operations to the calls between
    ``MPI_Pcontrol(1)`` and ``MPI_Pcontrol(0)``; it is empty if the program marks no timed part. The
    ``ns`` of the ``rows`` of an operation add up to those in ``ops``. ``rounds`` has one entry for
    each kind; the substitute for mpi4py counts none. ``commutes`` is False if the rank created an
    operation that does not commute, None if unknown: other processes were started, or mpi4py
    counted the calls.
    """

    rank: int
    size: int
    host: str
    wall_ns: int
    outside: int = 0
    ops: dict[str, OpCounts] = field(default_factory=lambda: {n: OpCounts() for n in OPERATIONS})
    p2p_sizes: list[int] = field(default_factory=lambda: [0] * SIZE_BINS)
    coll_sizes: list[int] = field(default_factory=lambda: [0] * SIZE_BINS)
    to: dict[int, tuple[int, int]] = field(default_factory=dict)
    timed_calls: dict[str, int] = field(default_factory=dict)
    rows: dict[RowKind, RowSums] = field(default_factory=dict)
    rounds: list[RoundSums] = field(default_factory=list)
    commutes: bool | None = None

    @property
    def messages(self) -> int:
        """Number of point-to-point messages sent."""
        return sum(self.p2p_sizes)


def read_ranks(directory: Path, ranks: int) -> list[RankCounts]:
    """The counts of all ranks, in order.

    Raises RunnerError if a rank's file is missing or unfinished, or if the ranks do not form one
    world of ``ranks`` processes.
    """
    files = {path.name: path for path in entries(directory) if path.name.startswith("rank-")}
    missing = [rank for rank in range(ranks) if f"rank-{rank}" not in files]
    if missing:
        have = ranks - len(missing)
        raise RunnerError(
            f"{len(missing)} of {ranks} ranks left no counts (the first: rank "
            f"{missing[0]}{'' if have else ', no rank did'}): the profiling library was "
            "not loaded there.\nThe program has to be dynamically linked, so that the "
            f"library can be preloaded, and {directory.parent} has to be writable on every "
            "node",
            code="trace.no_counts",
        )
    every_rank = [parse_counts(files[f"rank-{rank}"]) for rank in range(ranks)]
    for counts in every_rank:
        if counts.size != ranks:
            raise RunnerError(
                f"rank {counts.rank} saw a world of {counts.size} processes, {ranks} were started",
                code="trace.no_counts",
            )
    return every_rank


def parse_counts(path: Path) -> RankCounts:
    """The counts in one rank's file; raises RunnerError if the file is not complete."""
    try:
        lines = read_bytes(path, _MOST_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:  # The program wrote there, too.
        lines = []
    if not lines or lines[0] != FORMAT or lines[-1] != "end":
        raise RunnerError(
            f"{path.name.replace('-', ' ')} wrote no counts: it ended without MPI_Finalize "
            "(exit, a crash, or a signal).  Features can be traced only of a program that "
            "runs to its end",
            code="trace.no_counts",
        )
    try:
        return _counts(lines[1:-1])
    except (ValueError, KeyError, TypeError) as problem:
        raise RunnerError(
            f"the counts in {path} are damaged: {problem}", code="trace.damaged"
        ) from None


def _counts(lines: list[str]) -> RankCounts:
    single: dict[str, str] = {}
    ops: dict[str, OpCounts] = {}
    to: dict[int, tuple[int, int]] = {}
    timed_calls: dict[str, int] = {}
    rows: dict[RowKind, RowSums] = {}
    rounds: list[RoundSums] = []
    for line in lines:
        key, _, rest = line.partition(" ")
        if key == "op":
            name, *words = rest.split()
            calls, nonblocking, size, comm_sizes, ns = map(int, words)
            ops[name] = OpCounts(calls, nonblocking, size, comm_sizes, ns)
        elif key == "timed":
            name, count = rest.split()
            timed_calls[name] = int(count)
        elif key == "to":
            rank, messages, size = map(int, rest.split())
            to[rank] = (messages, size)
        elif key == "row":
            kind, sums = _row(rest)
            if kind in rows:
                raise ValueError(f"two lines for the row {rest[:40]!r}")
            rows[kind] = sums
        elif key == "round":
            rounds.append(_round(rest))
        elif key in _LINES:
            single[key] = rest
        else:
            raise ValueError(f"unknown line {line[:40]!r}")
    return RankCounts(
        rank=int(single["rank"]),
        size=int(single["size"]),
        host=single["host"],
        wall_ns=int(single["wall_ns"]),
        outside=int(single["outside"]),
        ops={name: ops[name] for name in OPERATIONS},
        p2p_sizes=_sizes(single["p2p_sizes"]),
        coll_sizes=_sizes(single["coll_sizes"]),
        to=to,
        timed_calls=timed_calls,
        rows=rows,
        rounds=rounds,
        commutes={"0": False, "1": True, None: None}[single.get("commutes")],
    )


def _round(text: str) -> RoundSums:
    number, ns, longest, squares = text.split()
    sums = RoundSums(int(number), int(ns), int(longest), float(squares))
    if not (sums.rounds > 0 and 0 <= sums.longest <= sums.ns and 0 <= sums.squares < math.inf):
        raise ValueError(f"impossible round {text[:60]!r}")
    return sums


def _row(text: str) -> tuple[RowKind, RowSums]:
    name, *words = text.split()
    nonblocking, size_bin, comm_size, far, *sums = map(int, words)
    calls, size, ns = sums
    good = (
        name in OPERATIONS
        and {nonblocking, far} <= {0, 1}
        and size_bin in range(SIZE_BINS)
        and min(comm_size, *sums) >= 0
    )
    if not good:
        raise ValueError(f"impossible row {text[:60]!r}")
    kind = RowKind(name, bool(nonblocking), size_bin, comm_size, bool(far))
    return kind, RowSums(calls, size, ns)


def _sizes(text: str) -> list[int]:
    sizes = [int(word) for word in text.split()]
    if len(sizes) != SIZE_BINS:
        raise ValueError(f"{len(sizes)} sizes instead of {SIZE_BINS}")
    return sizes
