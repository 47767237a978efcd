"""The order in which the blocks of a step start; names as in the public miniGhost.

The first ready task in the order runs first.
"""

from __future__ import annotations

import random

from runner.runtimes.tpod.blocks import Blocks

Face = tuple[int, int]
"""Axis and side of a face of the box with another process behind it."""

ORDERS = {
    "cart": "x fastest, then y, then z",
    "random": "shuffled",
    "comm_first": "blocks with messages first",
    "comm_last": "blocks with messages last",
    "comm_first_rand": "blocks with messages first, both parts shuffled",
    "interleaved": "blocks with messages and without in turn",
    "tdag": "by the number of blocks to the nearest block with messages",
    "wtdag": "the same, and those with more messages first",
}
"""The first blocks in each order."""


def ordered(blocks: Blocks, faces: list[Face], order: str, seed: int) -> list[int]:
    """The numbers of the blocks; raises KeyError for an unknown order."""
    if order not in ORDERS:
        raise KeyError(order)
    numbers = list(range(blocks.count))
    counts = {n: _messages(blocks, n, faces) for n in numbers}
    if order in ("random", "comm_first_rand"):
        random.Random(seed).shuffle(numbers)
    if order in ("comm_first", "comm_first_rand"):
        numbers.sort(key=lambda n: not counts[n])
    elif order == "comm_last":
        numbers.sort(key=lambda n: bool(counts[n]))
    elif order == "interleaved":
        return _in_turn([n for n in numbers if counts[n]], [n for n in numbers if not counts[n]])
    elif order == "tdag":
        numbers.sort(key=lambda n: blocks.depth(n, faces))
    elif order == "wtdag":
        numbers.sort(key=lambda n: (blocks.depth(n, faces), -counts[n]))
    return numbers


def _messages(blocks: Blocks, number: int, faces: list[Face]) -> int:
    """Faces of a block with another process behind them."""
    return sum(blocks.neighbour(number, axis, side) is None for axis, side in faces)


def _in_turn(some: list[int], others: list[int]) -> list[int]:
    """Both lists merged in proportion to their lengths."""
    positions = [((n + 0.5) / len(part), number) for part in (some, others)
              for n, number in enumerate(part)]  # fmt: skip
    return [number for _, number in sorted(positions)]
