"""The blocks of Cannon in memory: every product has the right ones, whatever the order of regions.

The functions of the regions run with a recorder for messages and products. The dependencies of the
graph give what must happen before what. A slot may be written only where every use of the block
before it, and of the block written, is ordered by them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from runner.programs.apps.cannon.matrices import Layout, make_layout
from runner.programs.apps.cannon.part import Blocks, Part, group_of
from runner.programs.apps.cannon.variant_mate import GRAPH
from tests.case_table import case_table

Slot = tuple[str, int]
Node = tuple[int, int, int]
"""Local rank, region, iteration."""
ROUNDS = 5


@dataclass
class Recorder:
    """Stands for the context of a rank: writes down which slots a region uses, and messages."""

    shared: Blocks
    reads: list[Slot] = field(default_factory=list)
    writes: list[Slot] = field(default_factory=list)
    products: list[tuple[Slot, Slot]] = field(default_factory=list)
    peers: list[tuple[bool, int, int, int]] = field(default_factory=list)
    """Incoming, other rank, tag, elements."""

    def slot(self, array: Any) -> Slot:
        for name, memory in (("a", self.shared.a), ("b", self.shared.b)):
            offset = array.ctypes.data - memory.ctypes.data
            if 0 <= offset < memory.nbytes:
                return name, offset // memory[0].nbytes
        raise AssertionError("an array that is no block")

    def isend(self, array: Any, dest: int, tag: int) -> None:
        self.reads.append(self.slot(array))
        self.peers.append((False, dest, tag, array.size))

    def irecv(self, array: Any, source: int, tag: int) -> None:
        self.writes.append(self.slot(array))
        self.peers.append((True, source, tag, array.size))

    def multiply(self, *arguments: Any) -> None:
        a, b = self.slot(arguments[7]), self.slot(arguments[9])
        self.reads += [a, b]
        self.products.append((a, b))

    def seconds(self) -> float:
        return 0.0

    cpu_seconds = seconds


def recorded(layout: Layout, process: int, split: int) -> tuple[list[Part], dict[Node, Recorder]]:
    """All regions of all ranks of a process, run one after the other."""
    shared = Blocks(layout)
    parts = [Part(layout, process, n, shared, split) for n in range(layout.local_count)]
    found = {}
    for local, part in enumerate(parts):
        for region, i in itertools.product(GRAPH.regions, range(ROUNDS)):
            recorder = Recorder(shared)
            state: Any = part
            state.ctx, state.dgemm = recorder, recorder.multiply
            region.body(part, i)
            found[local, region.index, i] = recorder
    return parts, found


def before(parts: list[Part]) -> dict[Node, set[Node]]:
    """For each region of each iteration all that have finished when it starts."""
    done: dict[Node, set[Node]] = {}

    def direct(node: Node) -> Iterator[Node]:
        local, region, i = node
        if i:
            yield local, region, i - 1
        for edge in GRAPH.edges():
            if edge.target == region and i - edge.delay >= 0:
                ranks = parts[local].near if edge.neighbors else [local]
                yield from ((rank, edge.source, i - edge.delay) for rank in ranks)

    def collect(node: Node) -> set[Node]:
        if node not in done:
            done[node] = set()
            for other in direct(node):
                done[node] |= {other} | collect(other)
        return done[node]

    for local, region, i in itertools.product(
        range(len(parts)), range(len(GRAPH.regions)), range(ROUNDS)
    ):
        collect((local, region, i))
    return done


def wanted_block(part: Part, layout: Layout, step: int) -> int:
    """The number k of the blocks A(x, k) and B(k, y) of a step."""
    return (part.x + part.y + step) % layout.blocks


LAYOUTS = [(1, None, 9), (2, None, 2), (2, None, 8), (2, (2, 1), 8), (4, None, 1), (4, None, 9),
           (4, (1, 4), 4), (6, None, 6), (6, None, 24)]  # fmt: skip


@case_table(("processes", "grid", "local"), LAYOUTS)
def test_no_order_of_regions_multiplies_wrong_blocks(
    processes: int, grid: tuple[int, int] | None, local: int
) -> None:
    side = int((processes * local) ** 0.5)
    layout = make_layout(side, processes, grid, local)  # blocks of one number
    parts, found = recorded(layout, processes - 1, 1)
    order = before(parts)
    writes: dict[Slot, list[Node]] = {}
    for node, recorder in found.items():
        for slot in recorder.writes:
            writes.setdefault(slot, []).append(node)
    for node, recorder in found.items():
        for slot in recorder.reads:
            for writer in writes.get(slot, []):
                assert writer in order[node] or node in order[writer], (node, slot, writer)
    held = holdings(layout, parts, found, writes)
    for (local_rank, region, i), recorder in found.items():
        node = (local_rank, region, i)
        first = {0: 0, 1: parts[local_rank].ready}.get(region - 2, 0)
        for n, pair in enumerate(recorder.products):
            step = i * group_of(layout) + first + n
            for slot in pair:
                writers = [w for w in writes.get(slot, []) if w in order[node]]
                last = max(writers, key=lambda w: w[2], default=None)
                assert held[slot, last] == wanted_block(parts[local_rank], layout, step)
    for part_steps in steps_of(parts, found):
        assert part_steps == list(range(ROUNDS * group_of(layout)))


def holdings(
    layout: Layout, parts: list[Part], found: dict[Node, Recorder], writes: dict[Slot, list[Node]]
) -> dict[tuple[Slot, Node | None], int]:
    """What a slot holds after a write (None: at the start): the number k of its block.

    A block that moves through n ranks to the left was n columns to the right of the rank's own; so
    the block number t of a line that begins at place 0 has k = x + y + t.
    """
    held: dict[tuple[Slot, Node | None], int] = {}
    group = group_of(layout)
    for local, part in enumerate(parts):
        for name, first, place, length in (
            ("a", part.first_a, part.place_a, part.length_a),
            ("b", part.first_b, part.place_b, part.length_b),
        ):
            start = part.x + part.y - place
            held[(name, first + place), None] = (start + place) % layout.blocks
            for slot, nodes in writes.items():
                for node in nodes:
                    if slot[0] == name and node[0] == local:
                        number = length + node[2] * group + place
                        held[slot, node] = (start + number) % layout.blocks
    return held


def steps_of(parts: list[Part], found: dict[Node, Recorder]) -> Iterator[list[int]]:
    """The steps that each rank multiplies, in ascending order."""
    for local, part in enumerate(parts):
        steps = []
        for i in range(ROUNDS):
            early, late = (len(found[local, region, i].products) for region in (2, 3))
            steps += [i * part.group + n for n in range(early + late)]
        yield steps


@case_table(("processes", "grid", "local"), LAYOUTS)
@case_table("split", [1, 3])
def test_every_message_has_its_partner(
    processes: int, grid: tuple[int, int] | None, local: int, split: int
) -> None:
    """In each iteration; with as many bytes as flat MPI sends."""
    side = int((processes * local) ** 0.5)
    layout = make_layout(2 * side, processes, grid, local)
    sent: dict[tuple[int, int, int, int], list[int]] = {}
    received: dict[tuple[int, int, int, int], list[int]] = {}
    elements = 0
    for process in range(processes):
        _, found = recorded(layout, process, split)
        for (local_rank, _, i), recorder in found.items():
            rank = process * local + local_rank
            for incoming, peer, tag, count in recorder.peers:
                key = (peer, rank, tag, i) if incoming else (rank, peer, tag, i)
                (received if incoming else sent).setdefault(key, []).append(count)
                elements += 0 if incoming else count
    assert sent == received
    rows, columns = layout.processes
    crossing = processes * (layout.local[0] * (columns > 1) + layout.local[1] * (rows > 1))
    assert elements == ROUNDS * group_of(layout) * crossing * layout.width**2


def test_the_blocks_of_a_line_are_under_way_together() -> None:
    """Each rank of a line has one message in each direction, if only A or only B travels."""
    layout = make_layout(48, 2, None, 8)
    assert group_of(layout) == layout.local[1] == 2
    parts, found = recorded(layout, 0, 1)
    assert {len(found[n, 0, 0].peers) for n in range(len(parts))} == {1}
    assert {np.shares_memory(part.a, parts[0].a) for part in parts} == {True}
