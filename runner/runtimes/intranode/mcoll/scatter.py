"""Scatter by a tree over nodes in which all objects of a node send (Ouyang 4.3)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from runner.runtimes.intranode.mcoll.plan import RECV, SEND, Plan


def parts(count: int, radix: int) -> list[tuple[int, int]]:
    """Begin and end of ``radix`` parts of ``count`` nodes; the first has a node if there is one."""
    ends = [-(-count * number // radix) for number in range(radix + 1)]
    return list(pairwise(ends))


def levels(nodes: int, radix: int, node: int) -> Iterator[tuple[int, int, int, int]]:
    """The messages of the tree that involve ``node``, starting with the one it receives.

    Yields head, number of the part (1 and more), and the part's begin and end.  Part p is sent by
    object p - 1 of the head to the same one of the part's first node, the head of that part.
    """
    low, high = 0, nodes
    while high - low > 1:
        pieces = [(low + a, low + b) for a, b in parts(high - low, radix)]
        for number, (begin, end) in enumerate(pieces):
            if number and begin < end and node in (low, begin):
                yield low, number, begin, end
        low, high = next(piece for piece in pieces if piece[0] <= node < piece[1])


def tree(plan: Plan, size: int, root: int) -> None:
    """The tree of the seat's radix, for any number of nodes; ``size``: bytes of a rank."""
    seat = plan.seat
    head, local = seat.topology.places[root]
    block = size * seat.locals
    buffer = plan.room(block * seat.nodes)
    own = (seat.node - head) % seat.nodes
    if seat.node == head and seat.local == local:
        ranks = [
            seat.rank(head + node, place)
            for node in range(seat.nodes)
            for place in range(seat.locals)
        ]
        plan.copies(
            (buffer.at(n * size), SEND.at(rank * size), size) for n, rank in enumerate(ranks)
        )
    messages = [m for m in levels(seat.nodes, seat.radix, own) if m[1] - 1 == seat.local]
    for low, number, begin, end in messages:
        if own == begin:
            plan.recv(head + low, number - 1, buffer.at(begin * block), (end - begin) * block)
    plan.exchange()
    plan.barrier()
    for low, number, begin, end in messages:
        if own == low:
            plan.send(head + begin, number - 1, buffer.at(begin * block), (end - begin) * block)
    under_way = plan.start()
    plan.copy(RECV, buffer.at(own * block + seat.local * size), size)
    plan.wait(under_way)
