"""How much of a program a parameter can touch at all, from what was traced of it.

A broadcast's algorithm does nothing for a program that never broadcasts, and an eager limit only
moves messages between its old and its new value.  What the trace says of that needs no learning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from autotune.prediction.scaling import NODES
from autotune.space import Setting
from autotune.space.operations import operation_of
from runner.trace.schema import COLLECTIVES, SIZE_BINS

_CLASS = {
    "bcast": "one_to_n_share",
    "scatter": "one_to_n_share",
    "reduce": "n_to_one_share",
    "gather": "n_to_one_share",
}
"""Feature with the share of the communication time; n-to-n for the rest."""
_SPREAD = ("alltoall", "scatter")
"""What a rank hands to these is cut into one part for each rank."""
_LIMIT = re.compile(r"(?<!_rndv)_(eager_limit|eager_threshold|max_send_size)$", re.IGNORECASE)
"""Names of limits on the bytes of one message or one piece of it."""
_LATENCY = 16384.0
"""A message costs as much as these bytes before its first byte is sent."""
UNUSED = 0.005
"""Share of the run time below which a parameter acts on nothing worth a proposal."""
LARGE = 13
"""From 2^13 bytes on a collective's cost is in its bytes, below in its messages."""


@dataclass(frozen=True)
class Exposure:
    """What one program does, by name of feature, and the nodes that it was traced on."""

    values: Mapping[str, float]

    @property
    def nodes(self) -> float:
        """On which it was traced."""
        return self.values[NODES]

    def to(self, parameter: str) -> tuple[float, float]:
        """Shares of the run time that the parameter can act on, in messages between two ranks and
        in collectives; each 0 to 1."""
        there = self._there(parameter) * self.values["comm_fraction"]
        p2p, coll = self._parts(parameter)
        return there * p2p, there * coll

    def crossing(self, parameter: str, old: float, new: float) -> float:
        """Share of the run time in messages that only one of two limits lets pass."""
        if not _LIMIT.search(parameter):
            return 0.0
        low, high = sorted((old, new))
        part = sum(share for size, share in self._traffic if low < size <= high)
        return self._there(parameter) * self.values["comm_fraction"] * part

    def large(self, parameter: str) -> float:
        """1 where the parameter's collective moves long messages, 0 where short ones."""
        operation = operation_of(parameter)
        if operation in ("", "barrier"):
            return 0.0
        return 1.0 if self._each(operation) >= 2**LARGE else 0.0

    def _there(self, parameter: str) -> float:
        """Whether the network or the memory that it is about is between any ranks."""
        if self.nodes > 1:
            # How many of the messages stay within a node is not traced.
            return 0.5 if parameter.startswith(("btl_sm", "btl_vader", "smsc")) else 1.0
        return 0.0 if parameter.startswith(("btl_tcp", "coll_han")) else 1.0

    def _parts(self, parameter: str) -> tuple[float, float]:
        """Of the communication time."""
        if operation := operation_of(parameter):
            barrier = operation == "barrier"
            return 0.0, self.values["sync_share"] if barrier else self._operations[operation]
        coll = self.values["coll_share"] + self.values["sync_share"]
        if parameter.startswith("coll_"):
            return 0.0, coll
        p2p = self.values["p2p_share"] + self.values["wait_share"]
        if parameter in ("map_by", "rank_by"):
            # Dealt out in turn, neighbours are parted.
            p2p /= max(self.values["p2p_distance"], 1.0)
        return p2p, coll

    @cached_property
    def _operations(self) -> dict[str, float]:
        """Share of each collective operation: its kind's, dealt out by calls and bytes."""
        costs = {
            name: self.values[f"{name}_calls"] * (1 + self.values[f"{name}_bytes"] / _LATENCY)
            for name in COLLECTIVES
        }
        found = {}
        for name, cost in costs.items():
            kind = _CLASS.get(name, "n_to_n_share")
            whole = sum(c for n, c in costs.items() if _CLASS.get(n, "n_to_n_share") == kind)
            found[name] = self.values[kind] * cost / whole if whole else 0.0
        return found

    @cached_property
    def _traffic(self) -> list[tuple[float, float]]:
        """Sizes of messages in bytes, each with its share of the communication time."""
        names = [f"p2p_size_2e{k:02d}" for k in range(SIZE_BINS - 1)]
        costs = [self.values[n] * (1 + 2.0**k / _LATENCY) for k, n in enumerate(names)]
        whole = sum(costs) or 1.0
        p2p = self.values["p2p_share"] + self.values["wait_share"]
        # The middle of a bin on the scale of the sizes.
        found = [(1.4 * 2.0**k, p2p * cost / whole) for k, cost in enumerate(costs) if cost]
        found += [(self._each(n), share) for n, share in self._operations.items() if share]
        return found

    def _each(self, operation: str) -> float:
        """Bytes of one message of the collective."""
        ranks = self.values["ranks"] if operation in _SPREAD else 1.0
        return self.values[f"{operation}_bytes"] / max(ranks, 1.0)


def acting(setting: Setting, values: Mapping[str, float]) -> Setting:
    """The setting less the parameters that act on nothing that the program was seen to do."""
    return setting.without(*unused(setting, [values]))


def unused(parameters: Iterable[str], traced: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    """Parameters that act on less than :data:`UNUSED` of the run time in each of the traced
    launches: a barrier's algorithm where there was no barrier.  ``traced``: values by feature of
    each launch, at least one."""
    known = [Exposure(values) for values in traced]
    return tuple(p for p in parameters if all(sum(seen.to(p)) < UNUSED for seen in known))
