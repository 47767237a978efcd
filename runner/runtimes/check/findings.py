"""What a check says of a graph: missing and superfluous dependencies, and other races."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.runtimes.check.conflicts import Conflicts
from runner.runtimes.check.journal import Label, Piece
from runner.runtimes.check.order import Cycle, Needed, Order, Skeleton

MISSING, SAME, OWN, STRANGER, OUTSIDE = "missing", "same", "own", "stranger", "outside"
"""Kinds of races: a dependency is missing; two ranks do the same in one iteration; a region uses
its own message; the ranks are no neighbours; one side is outside of the graph."""
NEEDED, SUPERFLUOUS, IMPLIED, UNTESTED = "needed", "superfluous", "implied", "untested"
"""Verdicts on a declared dependency, the strongest first."""
_MOST = 12
"""Most candidates that are tried in a round."""


@dataclass(frozen=True)
class RegionInfo:
    """A region, and where its function is."""

    name: str
    file: str
    line: int


@dataclass(frozen=True)
class GraphInfo:
    """A graph; ``dependencies``: target, source, delay, neighbours, as it is written."""

    name: str
    regions: list[RegionInfo]
    dependencies: list[tuple[int, int, int, bool, str]]
    model: str = "mate"
    """``tarragon``: the regions are tasks, and the dependencies edges between them."""


@dataclass(frozen=True)
class RaceSide:
    """One side of a race."""

    region: str
    """Empty outside of graphs."""
    file: str
    line: int
    rank: int
    """Number in its process."""
    iteration: int
    kind: str
    """``body``, ``message`` or ``root``."""


@dataclass(frozen=True)
class GraphRace:
    """A race that one change mends, with an example."""

    kind: str
    model: str
    graph: str
    region: str
    dependency: str
    """What the region should depend on; empty if no dependency helps."""
    first: RaceSide
    second: RaceSide
    memory: str
    pairs: int


@dataclass(frozen=True)
class Verdict:
    """What a declared dependency is good for."""

    model: str
    graph: str
    region: str
    file: str
    line: int
    dependency: str
    verdict: str


@dataclass(frozen=True)
class _Group:
    kind: str
    needed: Needed | None
    key: tuple[Any, ...]


class Races:
    """The unordered conflicts of all processes."""

    def __init__(
        self,
        graphs: Sequence[GraphInfo],
        processes: Sequence[Skeleton],
        conflicts: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    ) -> None:
        self._graphs, self._processes, self._conflicts = graphs, processes, conflicts
        self._sequences = [_sequence(graph) for graph in graphs]
        self._groups: dict[_Group, list[tuple[int, int]]] = defaultdict(list)
        """Process and number of the pair."""
        order = Order(processes)
        self.racing = [np.flatnonzero(~order.holds(n, a, b)) for n, (a, b) in enumerate(conflicts)]
        for process, numbers in enumerate(self.racing):
            for number in numbers.tolist():
                self._groups[self._classify(process, number)].append((process, number))

    def _sides(self, process: int, number: int) -> tuple[Piece, Piece]:
        pieces = self._processes[process].pieces
        a, b = self._conflicts[process]
        return pieces[int(a[number])], pieces[int(b[number])]

    def _classify(self, process: int, number: int) -> _Group:
        a, b = self._sides(process, number)
        la, lb = a.label, b.label
        if la is None or lb is None or la.graph != lb.graph:
            sides = [(p.label.graph, p.label.region) if p.label else (-1, -1) for p in (a, b)]
            return _Group(OUTSIDE, None, tuple(sorted(sides)))
        if la[:3] == lb[:3]:
            return _Group(OWN, None, (la.graph, la.region))
        low, high = sorted((la, lb), key=self._time)
        others = low.rank != high.rank
        delay = min(1, high.execution - low.execution)
        if not delay and low.region == high.region:
            return _Group(SAME, None, (low.graph, low.region))
        needed = Needed(low.graph, high.region, low.region, delay, others)
        if others and low.rank not in self._processes[process].neighbours[high.rank]:
            return _Group(STRANGER, needed, ())
        return _Group(MISSING, needed, ())

    def _time(self, label: Label) -> tuple[int, int]:
        """When an execution would come if the regions ran one after the other, as in a loop."""
        return label.execution, self._sequences[label.graph][label.region]

    def chosen(self) -> list[tuple[_Group, list[tuple[int, int]]]]:
        """The groups to name: the fewest dependencies that order all pairs, then the rest."""
        for pairs in self._groups.values():
            pairs.sort(key=self._distance)
        result = [item for item in self._groups.items() if item[0].kind != MISSING]
        groups = {g: pairs for g, pairs in self._groups.items() if g.kind == MISSING}
        left = {pair for pairs in groups.values() for pair in pairs}
        extra: list[Needed] = []
        while left and groups:
            ranked = sorted(groups, key=lambda g: (-len(left & set(groups[g])), _plainness(g)))
            best: tuple[int, _Group, set[tuple[int, int]]] | None = None
            for group in ranked[:_MOST]:
                assert group.needed is not None
                solved = left & self._solved([*extra, group.needed], left)
                if solved and (best is None or len(solved) > best[0]):
                    best = len(solved), group, solved
            if best is None:
                result += [(g, pairs) for g, pairs in groups.items() if left & set(pairs)]
                break
            _, group, solved = best
            assert group.needed is not None
            extra.append(group.needed)
            examples = [pair for pair in groups.pop(group) if pair in solved]
            result.append((group, examples + sorted(solved - set(examples))))
            left -= solved
        return result

    def _distance(self, pair: tuple[int, int]) -> tuple[int, int]:
        """Iterations between the two sides, and the first one: the least is the best example."""
        a, b = self._sides(*pair)
        if a.label is None or b.label is None:
            return 0, 0
        low, high = sorted((a.label.execution, b.label.execution))
        return high - low, low

    def _solved(self, extra: list[Needed], left: set[tuple[int, int]]) -> set[tuple[int, int]]:
        try:
            order = Order(self._processes, extra=extra)
        except Cycle:
            return set()
        solved = set()
        for process, (a, b) in enumerate(self._conflicts):
            numbers = np.array([n for p, n in left if p == process], np.int64)
            holds = order.holds(process, a[numbers], b[numbers])
            holds |= order.holds(process, b[numbers], a[numbers])
            solved |= {(process, n) for n in numbers[holds].tolist()}
        return solved

    def race(self, group: _Group, pairs: Sequence[tuple[int, int]], memory: str) -> GraphRace:
        """The race of a group; ``memory``: the bytes of its first pair."""
        a, b = self._sides(*pairs[0])
        low, high = sorted((a, b), key=lambda p: self._time(p.label) if p.label else (-1, -1))
        graph = next(self._graphs[p.label.graph] for p in (high, low) if p.label)
        needed = group.needed
        return GraphRace(
            kind=group.kind,
            model=graph.model,
            graph=graph.name,
            region=graph.regions[needed.target].name if needed else self._name(high),
            dependency=_written(graph, needed) if needed else "",
            first=self._access(low),
            second=self._access(high),
            memory=memory,
            pairs=len(pairs),
        )

    def _name(self, piece: Piece) -> str:
        label = piece.label
        return "" if label is None else self._graphs[label.graph].regions[label.region].name

    def _access(self, piece: Piece) -> RaceSide:
        label = piece.label
        if label is None:
            return RaceSide("", "", 0, piece.rank, -1, piece.kind)
        region = self._graphs[label.graph].regions[label.region]
        return RaceSide(
            region.name, region.file, region.line, label.rank, label.iteration, piece.kind
        )


def _sequence(graph: GraphInfo) -> list[int]:
    """The place of each region in an iteration that runs them one after the other.

    What a dependency on the same iteration says is certain. One on the iteration before lets its
    region come first. The rest is as in the source.
    """
    after: dict[int, set[int]] = {n: set() for n in range(len(graph.regions))}
    strong = [(t, s) for t, s, delay, _, _ in graph.dependencies if not delay and t != s]
    weak = [(s, t) for t, s, delay, _, _ in graph.dependencies if delay and t != s]
    for target, source in strong + weak:
        if not _reaches(after, source, target):
            after[target].add(source)
    places: dict[int, int] = {}
    while len(places) < len(after):
        ready = (n for n, sources in after.items() if n not in places and sources <= places.keys())
        places[next(ready)] = len(places)
    return [places[n] for n in range(len(graph.regions))]


def _reaches(after: dict[int, set[int]], start: int, end: int) -> bool:
    """True if ``end`` comes before ``start``."""
    left, visited = [start], {start}
    while left:
        node = left.pop()
        if node == end:
            return True
        left += after[node] - visited
        visited |= after[node]
    return False


def _plainness(group: _Group) -> tuple[bool, int]:
    """Own dependencies first, then those on the same iteration."""
    needed = group.needed
    assert needed is not None
    return needed.neighbours, needed.delay


def _written(graph: GraphInfo, needed: Needed) -> str:
    if graph.model == "tarragon":
        return f"edge from {graph.regions[needed.source].name} (delay {needed.delay})"
    return graph.regions[needed.source].name + "*" * needed.delay + "@" * needed.neighbours


def verdicts(graphs: Sequence[GraphInfo], own: Skeleton, conflicts: Conflicts) -> list[Verdict]:
    """For each declared dependency, whether a conflict of this process needs it.

    A dependency is needed if without it a conflict is ordered no more, or only by messages. It is
    superfluous if moreover its two regions have no conflict, and nothing else gives this order.
    """
    pairs = conflicts.earlier, conflicts.later
    base = Order([own], messages=False).holds(0, *pairs)
    active = {_execution(p.label) for p in own.pieces if p.label and p.touched}
    direct = {
        key
        for a, b in zip(conflicts.earlier.tolist(), conflicts.later.tolist(), strict=True)
        for key in _regions(own.pieces[a].label, own.pieces[b].label)
    }
    instances: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for piece in own.pieces:
        for graph, number, source in piece.declared:
            instances[graph, number].append((source, piece.number))
    result = []
    for number, info in enumerate(graphs):
        for d, (target, source, _, neighbours, text) in enumerate(info.dependencies):
            edges = instances.get((number, d), [])
            order = Order([own], without={(number, d)}, messages=False)
            verdict = _verdict(order, base, pairs, edges, own, active)
            if verdict == SUPERFLUOUS and (number, target, source, neighbours) in direct:
                verdict = IMPLIED
            region = info.regions[target]
            result.append(
                Verdict(
                    info.model,
                    info.name,
                    region.name,
                    region.file,
                    region.line,
                    text,
                    verdict,
                )
            )
    return result


def _regions(a: Label | None, b: Label | None) -> list[tuple[int, int, int, bool]]:
    """Graph, both regions in either order, and whether the ranks differ."""
    if a is None or b is None or a.graph != b.graph:
        return []
    others = a.rank != b.rank
    return [(a.graph, a.region, b.region, others), (a.graph, b.region, a.region, others)]


def _verdict(
    order: Order,
    base: NDArray[np.bool_],
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]],
    edges: list[tuple[int, int]],
    own: Skeleton,
    active: set[tuple[int, ...]],
) -> str:
    if (base & ~order.holds(0, *pairs)).any():
        return NEEDED
    labels = [(own.pieces[a].label, own.pieces[b].label) for a, b in edges]
    if not any(x and y and _execution(x) in active and _execution(y) in active for x, y in labels):
        return UNTESTED
    table = np.array(edges, np.int64)
    return IMPLIED if order.holds(0, table[:, 0], table[:, 1]).all() else SUPERFLUOUS


def _execution(label: Label) -> tuple[int, ...]:
    return label[:4]


def strongest(lists: Sequence[Sequence[Verdict]]) -> list[Verdict]:
    """One verdict for each dependency: the strongest of all processes and jobs."""
    ranks = (NEEDED, SUPERFLUOUS, IMPLIED, UNTESTED)
    best: dict[tuple[str, str, str], Verdict] = {}
    for verdict in (v for some in lists for v in some):
        key = verdict.graph, verdict.region, verdict.dependency
        if key not in best or ranks.index(verdict.verdict) < ranks.index(best[key].verdict):
            best[key] = verdict
    return list(best.values())


def as_json(value: Any) -> dict[str, Any]:
    """A race or verdict as JSON."""
    return asdict(value)
