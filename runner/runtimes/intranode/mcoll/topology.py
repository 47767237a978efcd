"""The mapping of ranks to nodes, and the seat of one rank."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

from runner.runtimes.intranode.errors import ConfigError

Run = tuple[int, int, int]


@dataclass(frozen=True)
class Topology:
    """``ranks[node][local]``: the MPI rank; all nodes have the same number of ranks."""

    ranks: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, keys: Sequence[Hashable]) -> Topology:
        """The topology from each rank's node key; nodes are in the order of their first ranks.

        Raises :class:`ConfigError` if the nodes have different numbers of ranks.
        """
        ranks_by_node: dict[Hashable, list[int]] = {}
        for rank, key in enumerate(keys):
            ranks_by_node.setdefault(key, []).append(rank)
        counts = sorted({len(ranks) for ranks in ranks_by_node.values()})
        if len(counts) > 1:
            raise ConfigError(
                f"nodes have {counts[0]} to {counts[-1]} ranks: expected the same number on each; "
                "start as many on all, as with mpirun --map-by ppr:N:node",
                code="intranode.option",
            )
        return cls(tuple(map(tuple, ranks_by_node.values())))

    @classmethod
    def of_equal_nodes(cls, size: int, nodes: int) -> Topology:
        """``size`` ranks in ``nodes`` nodes of neighbours; raises :class:`ConfigError`."""
        if nodes < 1 or size % nodes:
            raise ConfigError(
                f"--nodes {nodes}: {size} ranks cannot be split into so many equal nodes; take a "
                f"divisor of {size}",
                code="intranode.option",
            )
        each = size // nodes
        return cls.of([rank // each for rank in range(size)])

    @property
    def nodes(self) -> int:
        return len(self.ranks)

    @property
    def locals(self) -> int:
        """Ranks of a node."""
        return len(self.ranks[0])

    @cached_property
    def places(self) -> dict[int, tuple[int, int]]:
        """(node, local rank) of each rank."""
        return {
            rank: (node, local)
            for node, ranks in enumerate(self.ranks)
            for local, rank in enumerate(ranks)
        }

    def seat(self, rank: int, objects: int, radix: int) -> Seat:
        """The seat of a rank."""
        node, local = self.places[rank]
        return Seat(self, node, local, objects, radix)


@dataclass(frozen=True)
class Seat:
    """A rank in the view of the algorithms: node, local rank; ``objects`` k and ``radix`` B."""

    topology: Topology
    node: int
    local: int
    objects: int
    radix: int

    @property
    def nodes(self) -> int:
        return self.topology.nodes

    @property
    def locals(self) -> int:
        return self.topology.locals

    def rank(self, node: int, local: int) -> int:
        """The MPI rank at a place; ``node`` is taken modulo the number of nodes."""
        return self.topology.ranks[node % self.nodes][local]

    @property
    def is_object(self) -> bool:
        """True if this rank sends to other nodes."""
        return self.local < self.objects

    def part(self, count: int) -> tuple[int, int]:
        """Begin and end of this rank's part of ``count`` things divided over the node's ranks."""
        return share(count, self.locals, self.local)

    def slice(self, count: int) -> tuple[int, int]:
        """This object's part of ``count`` things; nothing for other ranks."""
        return share(count, self.objects, self.local) if self.is_object else (0, 0)


def share(count: int, parts: int, number: int) -> tuple[int, int]:
    """Begin and end of one of ``parts`` nearly equal parts of ``count`` things."""
    return count * number // parts, count * (number + 1) // parts
