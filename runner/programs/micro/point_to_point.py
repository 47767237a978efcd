"""Operations between two ranks, while all others are idle; and between neighbours on a ring."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

Operation = Callable[[int], None]
ONE_WAY, OTHER_WAY, ANSWER = 1, 2, 3
"""Message tags."""


def pingpong(comm: Any, size: int, buffers: int = 1, peer: int = 1) -> Operation:
    """Ranks 0 and ``peer`` send a message back and forth.

    Each round trip sends the next of ``buffers`` buffers of ``size`` bytes and receives into the
    buffer half the ring away. A reused buffer stays in the processors' caches, where a second copy
    costs little. With many buffers neither one was used recently.
    """
    ring = [_message(size) for _ in range(buffers)]
    turns = itertools.cycle([(ring[i], ring[i - buffers // 2]) for i in range(buffers)])

    def work(count: int) -> None:
        if comm.rank == 0:
            for out, back in itertools.islice(turns, count):
                comm.Send(out, peer, ONE_WAY)
                comm.Recv(back, peer, OTHER_WAY)
        elif comm.rank == peer:
            for out, back in itertools.islice(turns, count):
                comm.Recv(back, 0, ONE_WAY)
                comm.Send(out, 0, OTHER_WAY)

    return work


def bandwidth(comm: Any, size: int, window: int, *, both: bool, peer: int = 1) -> Operation:
    """Send ``window`` messages at once from rank 0 to rank ``peer``, then a byte back; with
    ``both`` as many the other way.

    The requests are persistent: one call of Python starts a whole window, so the library is timed
    and not Python.
    """
    from mpi4py import MPI

    if comm.rank not in (0, peer):
        return lambda count: None
    other = peer - comm.rank
    ways = [(0, ONE_WAY), (peer, OTHER_WAY)] if both else [(0, ONE_WAY)]
    out, into, answer = _message(size), _message(size), _message(1)
    requests = []
    for sender, tag in ways:
        for _ in range(window):
            if comm.rank == sender:
                requests.append(comm.Send_init(out, other, tag))
            else:
                requests.append(comm.Recv_init(into, other, tag))

    def work(count: int) -> None:
        for _ in range(count):
            MPI.Prequest.Startall(requests)
            MPI.Prequest.Waitall(requests)
            if comm.rank == 0:
                comm.Recv(answer, other, ANSWER)
            else:
                comm.Send(answer, other, ANSWER)

    return work


def exchange(comm: Any, size: int) -> Operation:
    """Every rank sends a message to each of its two neighbours on a ring of all ranks, and waits.

    Two ranks send one message each.  The requests are persistent, as in :func:`bandwidth`.
    """
    from mpi4py import MPI

    peers = sorted({(comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size} - {comm.rank})
    out = _message(size)
    requests = [comm.Recv_init(_message(size), peer, ONE_WAY) for peer in peers]
    requests += [comm.Send_init(out, peer, ONE_WAY) for peer in peers]

    def work(count: int) -> None:
        for _ in range(count):
            MPI.Prequest.Startall(requests)
            MPI.Prequest.Waitall(requests)

    return work


def message(size: int) -> bytearray:
    """``size`` bytes; not numpy's, whose import takes half of the time of a short launch.

    The pages are written, not only allocated: untouched pages all share the kernel's one zero page.
    """
    return bytearray(b"\x01") * size


def _message(size: int) -> list[Any]:
    from mpi4py import MPI

    return [message(size), MPI.BYTE]
