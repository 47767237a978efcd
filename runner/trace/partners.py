"""Message partners: the messages between ranks in a traced run, and the node of each rank.

They show how many messages another mapping of the ranks would send between nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from runner.trace.checks import EntryChecks
from runner.trace.counts import RankCounts

MOST_PAIRS = 20_000
"""Features of programs with more pairs of ranks have no partners: the file would be large."""


class Pair(NamedTuple):
    """Messages and bytes that a rank sent to another one or to itself."""

    sender: int
    receiver: int
    messages: int
    bytes: int


@dataclass(frozen=True)
class Partners:
    """``nodes``: the node number of each rank; nodes are numbered from 0 by their first ranks.
    ``pairs``: all pairs of ranks with messages. Ranks are those of MPI_COMM_WORLD; messages to
    processes outside of it are left out."""

    nodes: tuple[int, ...]
    pairs: tuple[Pair, ...]

    def far(self, nodes: Sequence[int]) -> float:
        """The share of the messages between nodes if each rank were on these; 0 without
        messages."""
        total = sum(pair.messages for pair in self.pairs)
        across = sum(p.messages for p in self.pairs if nodes[p.sender] != nodes[p.receiver])
        return across / total if total else 0.0

    def in_turn(self) -> tuple[int, ...] | None:
        """The node of each rank if ranks were distributed round-robin.

        None if the nodes' numbers of ranks differ by more than one: then such a mapping would
        change the ranks per node.
        """
        counts = Counter(self.nodes).values()
        if max(counts) - min(counts) > 1:
            return None
        return tuple(rank % len(counts) for rank in range(len(self.nodes)))

    def to_json(self) -> dict[str, Any]:
        """The partners as JSON types."""
        return {"nodes": list(self.nodes), "pairs": [list(pair) for pair in self.pairs]}


def partners_of(ranks: Sequence[RankCounts]) -> Partners | None:
    """The partners in a run from the counts of all its ranks (at least one); None if there are too
    many pairs."""
    if sum(len(rank.to) for rank in ranks) > MOST_PAIRS:
        return None
    numbers: dict[str, int] = {}
    nodes = tuple(numbers.setdefault(rank.host, len(numbers)) for rank in ranks)
    pairs = (
        Pair(rank.rank, receiver, *traffic)
        for rank in ranks
        for receiver, traffic in sorted(rank.to.items())
    )
    return Partners(nodes, tuple(pairs))


def partners_from_json(data: Any, ranks: int, nodes: int, check: EntryChecks) -> Partners:
    """The partners in a features file of ``ranks`` ranks on ``nodes`` nodes; raises FeaturesError
    with file and key if they are invalid."""
    raw = check.mapping("partners", data)
    check.keys("partners", raw, ("nodes", "pairs"))
    of_ranks = check.elements("partners.nodes", raw["nodes"])
    if len(of_ranks) != ranks:
        check.fail("partners.nodes", of_ranks, f"one node for each of {ranks} ranks")
    numbers = [
        check.whole(f"partners.nodes[{at}]", one, nodes - 1) for at, one in enumerate(of_ranks)
    ]
    if len(dict.fromkeys(numbers)) != nodes:
        check.fail("partners.nodes", of_ranks, f"every node from 0 to {nodes - 1}")
    pairs: dict[tuple[int, int], Pair] = {}
    entries = check.elements("partners.pairs", raw["pairs"])
    if len(entries) > MOST_PAIRS:
        check.fail("partners.pairs", len(entries), f"at most {MOST_PAIRS} pairs")
    for at, one in enumerate(entries):
        key = f"partners.pairs[{at}]"
        words = check.elements(key, one)
        if len(words) != len(Pair._fields):
            check.fail(key, words, "sender, receiver, messages, bytes")
        limits = (ranks - 1, ranks - 1, 2**63, 2**63)
        pair = Pair(
            *(check.whole(key, word, most) for word, most in zip(words, limits, strict=True))
        )
        if (pair.sender, pair.receiver) in pairs:
            check.fail(key, words, "one entry for each pair of ranks")
        pairs[pair.sender, pair.receiver] = pair
    return Partners(tuple(numbers), tuple(pairs.values()))
