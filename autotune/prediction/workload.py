"""The communication of a traced program as work: which operations it does, how often, at what size,
and how much of its time that took.

A profile in the features says it directly.  Features without one (of earlier versions) have totals
only; they are divided among sizes and operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runner.trace import Features
from runner.trace.schema import COLLECTIVES, SIZE_BINS

Cost = Callable[[str, float], float | None]
"""Microseconds of a calibrated operation at a message size; None if it was not calibrated."""

_SINGLE, _AROUND, _MANY = "pingpong", "exchange", "bw"
_WINDOW = 64
"""Messages of one call of the calibrated window (``bw``)."""
_CLASS = {
    "bcast": "one_to_n_share",
    "scatter": "one_to_n_share",
    "reduce": "n_to_one_share",
    "gather": "n_to_one_share",
}
"""The feature with the share of the communication time of an operation; n-to-n for all others."""
_PER_PEER = ("alltoall", "reduce_scatter")
"""Collectives whose bytes in a trace are those for all ranks, while the micro-benchmark's size is
that for one."""


@dataclass(frozen=True)
class Work:
    """One operation at one size.

    ``operation`` is one of a calibration and ``size`` its message size in bytes.  ``calls`` is the
    number of its calls by a rank, a mean over the ranks; it need not be whole.  ``seconds`` is the
    largest time of a rank that can have gone into them, waiting included.
    """

    operation: str
    size: float
    calls: float
    seconds: float


def workload(features: Features, cost: Cost) -> list[Work]:
    """The work of a program.  ``cost`` divides a time that is known only for several operations
    together, in proportion to what their calls cost under the default."""
    values = features.values
    communicating_s = values["comm_fraction"] * features.wall_s
    found: list[Work] = []
    messages_s = (values["p2p_share"] + values["wait_share"]) * communicating_s
    found += _divided(_messages(features), messages_s, cost)
    found += _divided(
        [("barrier", 0.0, values["barriers"])], values["sync_share"] * communicating_s, cost
    )
    for share in dict.fromkeys((*_CLASS.values(), "n_to_n_share")):
        own = [name for name in COLLECTIVES if _CLASS.get(name, "n_to_n_share") == share]
        calls = [
            (name, _size(name, features), values[f"{name}_calls"]) for name in own if name != "scan"
        ]
        found += _divided(calls, values[share] * communicating_s, cost)
    return found


def _messages(features: Features) -> list[tuple[str, float, float]]:
    """Operation, size and calls of the messages between two ranks.

    A call of the exchange sends one message to each neighbour, and one of the ping-pong two, one
    after the other.
    """
    values = features.values
    sent = values["p2p_messages"]
    at_once = values["nonblocking_p2p"]
    around = max(1.0, min(values["p2p_neighbours"], 2.0))
    found = []
    for k in range(SIZE_BINS - 1):
        share = values[f"p2p_size_2e{k:02d}"]
        if share:
            size = 1.4 * 2.0**k  # The middle of the bin on the logarithmic scale.
            found.append((_AROUND, size, share * sent * at_once / around))
            found.append((_SINGLE, size, share * sent * (1 - at_once) / 2))
    if zero := values["p2p_size_zero"]:
        found.append((_SINGLE, 0.0, zero * sent / 2))
    return found


def _size(operation: str, features: Features) -> float:
    handed = features.values[f"{operation}_bytes"]
    return handed / features.ranks if operation in _PER_PEER else handed


def _divided(calls: Sequence[tuple[str, float, float]], seconds: float, cost: Cost) -> list[Work]:
    known = [(name, size, n, cost(name, size)) for name, size, n in calls if n > 0]
    costs = [n * us / 1e6 if us is not None else 0.0 for _, _, n, us in known]
    whole = sum(costs)
    if not whole or not seconds:
        return []
    return [
        Work(name, size, n, seconds * own / whole)
        for (name, size, n, _), own in zip(known, costs, strict=True)
        if own
    ]
