"""The timed operations, each as a function that does it ``count`` times on given buffers.

The sizes are bytes of the message that one rank sends to one other rank (point-to-point,
all-to-all, scatter) or contributes (other collectives), as in the OSU suite.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, repeat
from typing import Any

from runner.programs.micro.point_to_point import bandwidth, exchange, message, pingpong

Operation = Callable[[int], None]
Build = Callable[..., Operation]


@dataclass(frozen=True)
class Kind:
    """One kind of operation; ``build(comm, size)`` makes the operation.

    ``transfers`` is how many times ``size`` bytes one operation moves, for operations with a
    bandwidth (else 0). ``ranks`` is the smallest number of ranks. ``has_root``: it has a root, rank
    0; with a fixed root calls overlap, because some ranks start the next call before others have
    ended this one. ``build(comm, size, turns=True)`` makes each rank the root in turn: then no rank
    starts before the root has ended the previous call. ``pair``: only two ranks take part, 0 and 1;
    ``build(comm, size, peer=...)`` names another one.
    """

    build: Build
    meaning: str
    transfers: int = 0
    ranks: int = 1
    has_size: bool = True
    has_root: bool = False
    pair: bool = False


def _repeat(call: Callable[[], Any]) -> Operation:
    def work(count: int) -> None:
        for _ in range(count):
            call()

    return work


def _doubles(size: int) -> array[float]:
    return array("d", [1.0]) * max(size // 8, 1)


def barrier(comm: Any, size: int) -> Operation:
    return _repeat(comm.Barrier)


def _roots(comm: Any, turns: bool) -> Iterator[int]:
    """The roots of consecutive calls."""
    return cycle(range(comm.size)) if turns else repeat(0)


def bcast(comm: Any, size: int, turns: bool = False) -> Operation:
    buffer, roots = message(size), _roots(comm, turns)
    return _repeat(lambda: comm.Bcast(buffer, next(roots)))


def reduce(comm: Any, size: int, turns: bool = False) -> Operation:
    mine, whole, roots = _doubles(size), _doubles(size), _roots(comm, turns)
    return _repeat(lambda: comm.Reduce(mine, whole, root=next(roots)))


def allreduce(comm: Any, size: int) -> Operation:
    mine, whole = _doubles(size), _doubles(size)
    return _repeat(lambda: comm.Allreduce(mine, whole))


def scan(comm: Any, size: int) -> Operation:
    mine, whole = _doubles(size), _doubles(size)
    return _repeat(lambda: comm.Scan(mine, whole))


def reduce_scatter(comm: Any, size: int) -> Operation:
    """Every rank contributes ``size`` bytes for each rank's share, as in OSU's block variant."""
    own = _doubles(size)
    mine = own * comm.size
    return _repeat(lambda: comm.Reduce_scatter_block(mine, own))


def allgather(comm: Any, size: int) -> Operation:
    mine, whole = message(size), message(size * comm.size)
    return _repeat(lambda: comm.Allgather(mine, whole))


def allgatherv(comm: Any, size: int) -> Operation:
    mine, whole = message(size), message(size * comm.size)
    shares = [whole, [size] * comm.size]
    return _repeat(lambda: comm.Allgatherv(mine, shares))


def gather(comm: Any, size: int, turns: bool = False) -> Operation:
    mine, whole = message(size), _whole(comm, size, turns)
    roots = _roots(comm, turns)
    return _repeat(lambda: comm.Gather(mine, whole, root=next(roots)))


def scatter(comm: Any, size: int, turns: bool = False) -> Operation:
    mine, whole = message(size), _whole(comm, size, turns)
    roots = _roots(comm, turns)
    return _repeat(lambda: comm.Scatter(whole, mine, root=next(roots)))


def _whole(comm: Any, size: int, turns: bool) -> bytearray | None:
    """The root's buffer for all ranks; None on ranks that are never a root."""
    return message(size * comm.size) if turns or comm.rank == 0 else None


def alltoall(comm: Any, size: int) -> Operation:
    mine, whole = message(size * comm.size), message(size * comm.size)
    return _repeat(lambda: comm.Alltoall(mine, whole))


def alltoallv(comm: Any, size: int) -> Operation:
    mine, whole = message(size * comm.size), message(size * comm.size)
    counts = [size] * comm.size
    return _repeat(lambda: comm.Alltoallv([mine, counts], [whole, counts]))


WINDOW = 64
"""Number of messages under way at once in the bandwidth tests, as in the OSU suite."""

OPERATIONS: dict[str, Kind] = {
    "pingpong": Kind(pingpong, "ping-pong between ranks 0 and 1: one round trip", 2, 2, pair=True),
    "bw": Kind(
        lambda comm, size, **more: bandwidth(comm, size, WINDOW, both=False, **more),
        f"rank 0 sends {WINDOW} messages at once, rank 1 answers once",
        WINDOW,
        2,
        pair=True,
    ),
    "bibw": Kind(
        lambda comm, size: bandwidth(comm, size, WINDOW, both=True),
        f"ranks 0 and 1 send {WINDOW} messages at once to each other",
        2 * WINDOW,
        2,
    ),
    "exchange": Kind(exchange, "every rank sends to its two neighbours on a ring and waits", 0, 2),
    "barrier": Kind(barrier, "barrier of all ranks; has no size", has_size=False),
    "bcast": Kind(bcast, "broadcast from rank 0", has_root=True),
    "reduce": Kind(reduce, "sum of doubles on rank 0", has_root=True),
    "allreduce": Kind(allreduce, "sum of doubles on all ranks"),
    "scan": Kind(scan, "prefix sums of doubles"),
    "reduce_scatter": Kind(reduce_scatter, "sum of doubles; each rank gets SIZE bytes of it"),
    "gather": Kind(gather, "every rank sends SIZE bytes to rank 0", has_root=True),
    "scatter": Kind(scatter, "rank 0 sends SIZE bytes to every rank", has_root=True),
    "allgather": Kind(allgather, "every rank sends the same SIZE bytes to all"),
    "allgatherv": Kind(allgatherv, "as allgather, with counts"),
    "alltoall": Kind(alltoall, "every rank sends different SIZE bytes to each rank"),
    "alltoallv": Kind(alltoallv, "as alltoall, with counts"),
}
