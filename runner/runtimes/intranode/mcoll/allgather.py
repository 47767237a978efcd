"""Allgather over nodes with several objects each (Ouyang 4.4).

A block is the contribution of all ranks of a node. Ranks write theirs to the node's memory, objects
exchange blocks with other nodes, and all ranks copy the blocks out in the order of MPI's ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runner.runtimes.intranode.mcoll.plan import RECV, SEND, Place, Plan


def bruck(plan: Plan, size: int) -> None:
    """Multi-object Bruck with a remainder, for any number of nodes; ``size``: bytes of a rank."""
    seat = plan.seat
    block = size * seat.locals
    buffer = plan.room(block * seat.nodes)
    plan.copy(buffer.at(seat.local * size), SEND, size)
    plan.barrier()
    collect(plan, buffer, block)
    plan.copies(
        piece
        for node in range(seat.nodes)
        for piece in _out(plan, node, buffer.at((node - seat.node) % seat.nodes * block), size)
    )


def collect(plan: Plan, buffer: Place, block: int) -> None:
    """Bruck's steps: block i of ``buffer`` becomes that of the i-th node after this one.

    Object l exchanges with the nodes at the distance (l + 1) S, where S grows by the radix. The
    last step has the rest. All nodes send from the beginning of their buffers.
    """
    seat = plan.seat
    nodes, radix, step = seat.nodes, seat.radix, 1
    while step < nodes:
        off = (seat.local + 1) * step
        blocks = max(min(step, nodes - off), 0) if seat.local < radix - 1 else 0
        plan.send(seat.node - off, seat.local, buffer, blocks * block)
        plan.recv(seat.node + off, seat.local, buffer.at(off * block), blocks * block)
        plan.exchange()
        plan.barrier()
        step *= radix


def recursive_doubling(plan: Plan, size: int) -> None:
    """Nodes exchange all their blocks at doubling distances, a slice by each object.

    The number of nodes must be a power of two.
    """
    seat = plan.seat
    block = size * seat.locals
    buffer = plan.room(block * seat.nodes)
    plan.copy(buffer.at(seat.node * block + seat.local * size), SEND, size)
    plan.barrier()
    step = 1
    while step < seat.nodes:
        begin, end = seat.slice(step * block)
        peer = seat.node ^ step
        mine, theirs = (node // step * step * block + begin for node in (seat.node, peer))
        plan.send(peer, seat.local, buffer.at(mine), end - begin)
        plan.recv(peer, seat.local, buffer.at(theirs), end - begin)
        plan.exchange()
        plan.barrier()
        step *= 2
    plan.copies(
        piece
        for node in range(seat.nodes)
        for piece in _out(plan, node, buffer.at(node * block), size)
    )


def ring(plan: Plan, size: int, overlap: bool) -> None:
    """As many rings as objects, each for its slice of all blocks."""
    seat = plan.seat
    block = size * seat.locals
    buffer = plan.room(block * seat.nodes)
    plan.clear()
    plan.copy(buffer.at(seat.node * block + seat.local * size), SEND, size)
    plan.barrier()
    rings(
        plan,
        [(buffer.at(node * block), block) for node in range(seat.nodes)],
        1,
        overlap,
        lambda node: plan.copies(_out(plan, node, buffer.at(node * block), size)),
    )


def rings(
    plan: Plan,
    blocks: Sequence[tuple[Place, int]],
    unit: int,
    overlap: bool,
    out: Callable[[int], None],
) -> None:
    """The steps of the rings; ``blocks``: place and bytes of each node's, slices in ``unit`` bytes.

    An object passes on its own received slices, so objects need not wait for each other. ``out``
    copies a block out: with ``overlap`` while the next one is under way. A block is complete when
    all objects have received their slices, which a counter for each block says.
    """
    seat = plan.seat
    before = seat.node
    for step in range(seat.nodes - 1):
        have, want = ((seat.node - step - more) % seat.nodes for more in (0, 1))
        for node, add, way in ((have, plan.send, 1), (want, plan.recv, -1)):
            place, size = blocks[node]
            begin, end = (unit * at for at in seat.slice(size // unit))
            add(seat.node + way, seat.local, place.at(begin), end - begin)
        messages = plan.start()
        if overlap:
            _complete(plan, have, step)
            out(have)
        plan.wait(messages)
        if seat.is_object:
            plan.signal(want)
        before = want
    if overlap or seat.nodes == 1:
        _complete(plan, before, seat.nodes - 1)
        out(before)
    else:
        plan.barrier()
        for node in range(seat.nodes):
            out(node)


def _complete(plan: Plan, node: int, step: int) -> None:
    """Wait until a block is complete; the own node's block always is."""
    if step:
        plan.await_signals(node, plan.seat.objects)


def _out(plan: Plan, node: int, block: Place, size: int) -> list[tuple[Place, Place, int]]:
    """The pieces of a node's block that are copied to the places of its ranks."""
    ranks = plan.seat.topology.ranks[node]
    return [(RECV.at(rank * size), block.at(n * size), size) for n, rank in enumerate(ranks)]
