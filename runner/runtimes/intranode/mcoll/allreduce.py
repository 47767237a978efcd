"""Allreduce over nodes with several objects each (Ouyang 4.5), with corrected remainders.

The ranks of a node reduce their vectors to one, objects exchange vectors with other nodes, and all
ranks copy the result out. The order depends only on ranks.
"""

from __future__ import annotations

from runner.runtimes.core.words import LINE
from runner.runtimes.intranode.mcoll.allgather import collect, rings
from runner.runtimes.intranode.mcoll.plan import RECV, SEND, Place, Plan
from runner.runtimes.intranode.mcoll.topology import share


def in_node(plan: Plan, result: Place, count: int, chunks: str) -> None:
    """Reduce ``count`` elements of the ranks of a node to ``result``, which all may then read.

    ``p-way``: each rank reduces its part of the vector over all ranks; ``binomial``: a tree.
    """
    seat, size = plan.seat, count * plan.item
    if seat.locals == 1:
        plan.copy(result, SEND, size)
        return
    slot_size = stride(size)
    slots = plan.room(slot_size * seat.locals)
    if chunks == "p-way":
        plan.copy(slots.at(seat.local * slot_size), SEND, size)
        plan.barrier()
        each_part(plan, result, [slots.at(n * slot_size) for n in range(seat.locals)], count)
        plan.barrier()
        return
    # The tree is rooted at local rank 0, whose slot is the result.
    places = [result, *(slots.at(n * slot_size) for n in range(1, seat.locals))]
    plan.copy(places[seat.local], SEND, size)
    plan.barrier()
    step = 1
    while step < seat.locals:
        if seat.local % (2 * step) == 0 and seat.local + step < seat.locals:
            own = places[seat.local]
            plan.fold(own, [own, places[seat.local + step]], count)
        plan.barrier()
        step *= 2


def stride(size: int) -> int:
    """Bytes from a vector to the next one: whole cache lines."""
    return max(-(-size // LINE), 1) * LINE


def each_part(plan: Plan, to: Place, sources: list[Place], count: int) -> None:
    """Combine vectors in the node's memory; each rank of the node processes its part."""
    begin, end = plan.seat.part(count)
    at = begin * plan.item
    plan.fold(to.at(at), [source.at(at) for source in sources], end - begin)


def bruck(plan: Plan, count: int, chunks: str) -> None:
    """Multi-object Bruck for any number of nodes; ``count``: elements.

    The result of node i is added from node i on, so sums of floats differ between nodes in their
    last bits.  F is the reduction of the S nodes from this one on, R that of the first N mod S of
    them.  R of the next step needs R of the node at the distance q S, so that message has both.
    """
    seat, size = plan.seat, count * plan.item
    nodes, radix, slot_size = seat.nodes, seat.radix, stride(size)
    full = plan.room(slot_size + size)  # F, and R behind it.
    rest = full.at(slot_size)
    inbox = plan.room((slot_size + stride(size)) * radix)
    inboxes = [inbox.at(2 * slot_size * n) for n in range(radix - 1)]
    in_node(plan, full, count, chunks)
    step = 1
    while step * radix <= nodes:
        quotient, remainder = divmod(nodes % (step * radix), step)
        if seat.local < radix - 1:
            off = (seat.local + 1) * step
            both = quotient == seat.local + 1 and remainder > 0
            length = (slot_size if both else 0) + size if size else 0
            plan.send(seat.node - off, seat.local, full, length)
            plan.recv(seat.node + off, seat.local, inboxes[seat.local], length)
        plan.exchange()
        plan.barrier()
        if quotient:
            parts = [full, *inboxes[: quotient - 1]]
            if remainder:
                parts.append(inboxes[quotient - 1].at(slot_size))
            each_part(plan, rest, parts, count)
        each_part(plan, full, [full, *inboxes], count)
        plan.barrier()
        step *= radix
    if step < nodes:
        parts = [full]
        for number in range(radix - 1):
            off = (number + 1) * step
            if nodes > off:
                source = full if nodes - off >= step else rest
                if number == seat.local:
                    plan.send(seat.node - off, number, source, size)
                    plan.recv(seat.node + off, number, inboxes[number], size)
                parts.append(inboxes[number])
        plan.exchange()
        plan.barrier()
        each_part(plan, full, parts, count)
        plan.barrier()
    plan.copy(RECV, full, size)


def bruck_in_order(plan: Plan, count: int, chunks: str) -> None:
    """Bruck with the vectors of all nodes, which each node reduces in the order of nodes.

    So all nodes have the same bits. It sends as many messages as :func:`bruck`, but longer ones.
    """
    seat, size = plan.seat, count * plan.item
    buffer = plan.room(size * seat.nodes)
    result = plan.room(size)
    in_node(plan, buffer, count, chunks)
    collect(plan, buffer, size)
    order = [buffer.at((node - seat.node) % seat.nodes * size) for node in range(seat.nodes)]
    each_part(plan, result, order, count)
    plan.barrier()
    plan.copy(RECV, result, size)


def recursive_doubling(plan: Plan, count: int, chunks: str) -> None:
    """Each object exchanges its slice with one node after the other; the nodes are a power of
    two."""
    seat, size = plan.seat, count * plan.item
    full, inbox = plan.room(size), plan.room(size)
    in_node(plan, full, count, chunks)
    begin, end = seat.slice(count)
    mine, theirs = full.at(begin * plan.item), inbox.at(begin * plan.item)
    step = 1
    while step < seat.nodes:
        peer = seat.node ^ step
        plan.send(peer, seat.local, mine, (end - begin) * plan.item)
        plan.recv(peer, seat.local, theirs, (end - begin) * plan.item)
        plan.exchange()
        # The operations commute: both nodes have the same bits.
        plan.fold(mine, [mine, theirs], end - begin)
        step *= 2
    plan.barrier()
    plan.copy(RECV, full, size)


def ring(plan: Plan, count: int, chunks: str, overlap: bool) -> None:
    """Reduce-scatter over nodes, then the rings of allgather."""
    item, nodes = plan.item, plan.seat.nodes
    result = plan.room(count * item)
    plan.clear()
    bounds = [share(count, nodes, node) for node in range(nodes)]
    reduce_scatter(plan, result.at(bounds[plan.seat.node][0] * item), count, chunks)
    rings(
        plan,
        [(result.at(low * item), (high - low) * item) for low, high in bounds],
        item,
        overlap,
        lambda node: _out(plan, result.at(bounds[node][0] * item), node, count),
    )


def scatter_bruck(plan: Plan, count: int, chunks: str) -> None:
    """Reduce-scatter over nodes, then Bruck's steps with the reduced chunks.

    It sends as many bytes as :func:`ring` in fewer steps.
    """
    nodes, node = plan.seat.nodes, plan.seat.node
    chunk_size = -(-count // nodes) * plan.item
    buffer = plan.room(chunk_size * nodes)
    reduce_scatter(plan, buffer, count, chunks)
    collect(plan, buffer, chunk_size)
    for other in range(nodes):
        _out(plan, buffer.at((other - node) % nodes * chunk_size), other, count)


def reduce_scatter(plan: Plan, to: Place, count: int, chunks: str) -> None:
    """Reduce-scatter over nodes: ``to`` becomes this node's chunk; chunks may be uneven.

    The nodes are divided among the objects: each sends the chunks of its nodes. On a node one
    object, with the same number as the senders, receives the chunks, and all ranks reduce them.
    """
    seat, item, nodes = plan.seat, plan.item, plan.seat.nodes
    vector = plan.room(count * item)
    begin, end = share(count, nodes, seat.node)
    largest = -(-count // nodes) * item
    inbox = plan.room(largest * nodes)
    in_node(plan, vector, count, chunks)
    for node in range(*seat.slice(nodes)):
        if node != seat.node:
            low, high = share(count, nodes, node)
            plan.send(node, seat.local, vector.at(low * item), (high - low) * item)
            continue
        for other in range(nodes):
            if other != node:
                plan.recv(other, seat.local, inbox.at(other * largest), (end - begin) * item)
    plan.exchange()
    plan.barrier()
    pieces = [inbox.at(node * largest) for node in range(nodes)]
    pieces[seat.node] = vector.at(begin * item)
    each_part(plan, to, pieces, end - begin)
    plan.barrier()


def _out(plan: Plan, chunk: Place, node: int, count: int) -> None:
    """Copy the chunk of a node to its place."""
    begin, end = share(count, plan.seat.nodes, node)
    plan.copy(RECV.at(begin * plan.item), chunk, (end - begin) * plan.item)
