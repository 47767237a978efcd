"""Message sizes on the command line, and the sizes of each operation."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

DEFAULT_RANGE = "8:1m"
BATCHES = 20
"""Number of batches into which the calls at one size are cut; the figure is the median batch."""
LEAST, MOST = 100, 2000
BYTES = 64 << 20
_UNITS = {"": 0, "k": 10, "m": 20}
Points = dict[str, list[int]]
"""Message sizes in bytes by operation."""


def one_size(text: str) -> int:
    """Bytes of one size such as ``4096``, ``4k`` or ``1m``; at least 1."""
    match = re.fullmatch(r"([1-9][0-9]{0,17})([kKmM]?)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"expected bytes such as 4096, 4k or 1m, not {text!r}")
    return int(match[1]) << _UNITS[match[2].lower()]


def sizes(text: str) -> list[int]:
    """Bytes from ``8,4k,1m`` or ``8:1m``: a range in steps of a factor of 4, with its ends."""
    if ":" not in text:
        return [one_size(word) for word in text.split(",")]
    first, _, last = text.partition(":")
    low, high = one_size(first), one_size(last)
    if low > high:
        raise argparse.ArgumentTypeError(
            f"{text!r} is a descending range; give the smaller size first"
        )
    steps = []
    while low < high:
        steps.append(low)
        low *= 4
    return [*steps, high]


def calls(size: int) -> int:
    """The default number of calls at a size.

    It depends only on the size, because settings are compared by the time of the same work.
    """
    return min(max(BYTES // max(size, 1), LEAST), MOST)


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two in the middle; at least one value.

    Not from ``statistics``: its import takes 10 ms of each rank.
    """
    ascending, half = sorted(values), len(values) // 2
    return ascending[half] if len(values) % 2 else (ascending[half - 1] + ascending[half]) / 2


def points_text(points: Points) -> str:
    """The argument of ``runner.programs.micro.probe --points``: ``pingpong:8/4096+barrier:0``."""
    return "+".join(f"{name}:{'/'.join(map(str, sizes))}" for name, sizes in points.items())
