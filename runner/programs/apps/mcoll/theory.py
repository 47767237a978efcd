"""Steps, messages and bytes between nodes of each algorithm, in closed form (Ouyang 4.3 to 4.5)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from runner.runtimes.intranode.mcoll.allreduce import stride
from runner.runtimes.intranode.mcoll.topology import share


@dataclass(frozen=True)
class Traffic:
    """Totals of all nodes; ``steps``: messages that wait for each other."""

    steps: int
    messages: int
    bytes: int


def logarithm(nodes: int, radix: int) -> int:
    """The largest t with radix^t <= nodes."""
    exponent = 0
    while radix ** (exponent + 1) <= nodes:
        exponent += 1
    return exponent


def _bruck_messages(nodes: int, radix: int) -> tuple[int, int]:
    """Steps, and messages of a node: B - 1 in a whole step, one for each S nodes that remain."""
    whole = logarithm(nodes, radix)
    rest = -(-nodes // radix**whole) - 1
    return whole + (rest > 0), whole * (radix - 1) + rest


def allgather(form: str, size: int, nodes: int, locals_: int, objects: int, radix: int) -> Traffic:
    """Traffic for ``size`` bytes of each rank by ``"bruck"``, ``"ring"`` or ``"rd"``."""
    block = size * locals_
    total = nodes * (nodes - 1) * block
    if not block:
        return Traffic(0, 0, 0)
    if form == "ring":
        return Traffic(nodes - 1, nodes * (nodes - 1) * min(objects, block), total)
    if form == "rd":
        steps = logarithm(nodes, 2)
        each = sum(min(objects, block << step) for step in range(steps))
        return Traffic(steps, nodes * each, total)
    steps, each = _bruck_messages(nodes, radix)
    return Traffic(steps, nodes * each, total)


def allreduce(
    form: str, count: int, item: int, nodes: int, objects: int, radix: int, exact: bool = True
) -> Traffic:
    """Traffic for ``count`` elements of ``item`` bytes; ``exact``: not sums of floats with equal
    bits."""
    size = count * item
    if not size:
        return Traffic(0, 0, 0)
    if form == "ring":
        lengths = [high - low for low, high in (share(count, nodes, n) for n in range(nodes))]
        each = sum((length > 0) + min(objects, length) for length in lengths)
        steps = nodes if nodes > 1 else 0
        return Traffic(steps, (nodes - 1) * each, 2 * (nodes - 1) * size)
    if form == "rd":
        steps = logarithm(nodes, 2)
        return Traffic(steps, nodes * steps * min(objects, count), nodes * steps * size)
    steps, each = _bruck_messages(nodes, radix)
    if form == "scatter-bruck":
        steps += nodes > 1
        scatter_messages = (nodes - 1) * min(nodes, count)
        chunk = -(-count // nodes) * item
        return Traffic(steps, scatter_messages + nodes * each, (nodes - 1) * (size + nodes * chunk))
    if not exact:
        return Traffic(steps, nodes * each, nodes * (nodes - 1) * size)
    # A step's message to the node that completes the remainder has R after F.
    both = 0
    for step in range(logarithm(nodes, radix)):
        distance = radix**step
        quotient, remainder = divmod(nodes % (distance * radix), distance)
        both += quotient > 0 and remainder > 0
    return Traffic(steps, nodes * each, nodes * (each * size + both * stride(size)))


def scatter(size: int, nodes: int, locals_: int, radix: int) -> Traffic:
    """Traffic for ``size`` bytes of each rank by the tree: one message for each node but the
    root's."""
    if not size:
        return Traffic(0, 0, 0)
    depth = 0
    while radix**depth < nodes:
        depth += 1
    return Traffic(depth, nodes - 1, size * locals_ * _tree_blocks(nodes, radix))


def _tree_blocks(nodes: int, radix: int) -> int:
    """Blocks of nodes in the messages of a tree: all but those that the head keeps."""
    if nodes <= 1:
        return 0
    ends = [-(-nodes * number // radix) for number in range(radix + 1)]
    below = sum(_tree_blocks(b - a, radix) for a, b in pairwise(ends))
    return nodes - ends[1] + below
