"""The number of messages between nodes under another mapping of a program's ranks."""

from __future__ import annotations

from dataclasses import dataclass

from autotune.space import Setting
from runner.trace import Features

IN_TURN = Setting({"map_by": "node"})
"""The part of a setting that distributes the ranks round-robin over the nodes."""


@dataclass(frozen=True)
class MappingChange:
    """Shares of the messages between nodes, 0 to 1: in the traced run, and with the ranks
    distributed round-robin over the nodes."""

    before: float
    after: float

    @property
    def stay(self) -> float:
        """The share of the messages between nodes that would still be between nodes."""
        return min(self.after / self.before, 1.0) if self.before else 1.0

    @property
    def leave(self) -> float:
        """The share of the messages within nodes that would be between nodes."""
        inside = 1 - self.before
        return max((self.after - self.before) / inside, 0.0) if inside else 0.0


def mapping_change(features: Features) -> MappingChange | None:
    """None if the mapping would not change it, or if the trace does not show it."""
    partners = features.partners
    if partners is None or features.nodes == 1:
        return None
    dealt = partners.in_turn()
    if dealt is None:
        return None
    change = MappingChange(partners.far(partners.nodes), partners.far(dealt))
    return None if change.before == change.after else change
