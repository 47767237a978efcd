"""The cells of one process on all levels, and the shares of its ranks in them.

The ranks of a process read each other's cells directly; cells of other processes are ghosts. On
each level the own cells come first, rank by rank, then the ghosts of each rank, then the zero of
the boundary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.programs.apps.flowcart.cycle import CYCLE, Stage
from runner.programs.apps.flowcart.mesh import LEVELS, Ids, Mesh
from runner.runtimes.core.kernels import load, scalars

Values = NDArray[np.float64]
Places = NDArray[np.uint32]
Call = Callable[[], None]
Place = Callable[[NDArray[Any]], NDArray[Any]]


def as_it_is(array: NDArray[Any]) -> NDArray[Any]:
    """The array itself."""
    return array


@dataclass(frozen=True)
class Exchange:
    """The exchange of a rank on one level with a rank of another process.

    Its ghosts are the values ``first`` to ``last`` (excluded); ``places`` are the own cells that
    are ghosts there, and ``outgoing`` is the buffer for them.
    """

    rank: int
    first: int
    last: int
    places: Places
    outgoing: Values


@dataclass(frozen=True)
class Slice:
    """One rank's part of a level: its cells and ghosts (last excluded), and its exchanges."""

    first: int
    last: int
    first_ghost: int
    last_ghost: int
    exchanges: list[Exchange]


@dataclass(frozen=True)
class Layer:
    """One level of a process.

    ``table`` [6 * cell + k] are the places of a cell's neighbours, ``parents`` the places of its
    parents in the layer above (empty on the coarsest level).
    """

    cells: Ids
    values: tuple[Values, Values]
    right: Values
    table: Places
    work: Places
    parents: Places
    slices: list[Slice]

    @property
    def size(self) -> list[int]:
        """Length of the values, and number of cells."""
        return [len(self.values[0]), len(self.cells)]


class Domain:
    """The cells of these ranks, which form one process; ``owners`` is from :meth:`Mesh.shares`.

    ``place`` puts each array into its memory.
    """

    def __init__(
        self, mesh: Mesh, owners: list[Ids], ranks: Sequence[int], place: Place = as_it_is
    ) -> None:
        self._place = place
        self.ranks = list(ranks)
        self.neighbours: list[set[int]] = [set() for _ in ranks]
        """For each rank, the other ranks of the process with neighbours of its cells."""
        self.layers: list[Layer] = []
        for depth in range(LEVELS - 1, -1, -1):
            self.layers.insert(0, self._layer(mesh, owners[depth], depth))
        self._kernels = load("runner.programs.apps.flowcart.kernels")
        self.reset()

    def _layer(self, mesh: Mesh, owner: Ids, depth: int) -> Layer:
        level = mesh.levels[depth]
        local = np.full(int(owner.max()) + 1, -1)
        local[self.ranks] = np.arange(len(self.ranks))
        own_cells = [np.flatnonzero(owner == rank) for rank in self.ranks]
        cells = np.concatenate(own_cells)
        place = np.empty(level.count, dtype=np.int64)
        place[cells] = np.arange(len(cells))
        tables, slices = [], []
        start, end = 0, len(cells)
        for number, mine in enumerate(own_cells):
            around = level.neighbours[mine]
            has_neighbour = around >= 0
            home = np.where(has_neighbour, local[owner[around]], -1)
            near = np.unique(home[has_neighbour & (home >= 0)])
            self.neighbours[number].update(near[near != number].tolist())
            table = place[around]
            outside = has_neighbour & (home < 0)
            # Owners only grow along the curve, so the ghosts of one owner lie together.
            ghosts = np.unique(around[outside])
            table[outside] = end + np.searchsorted(ghosts, around[outside])
            table[~has_neighbour] = -1
            exchanges = [
                _exchange(int(other), owner, ghosts, end, mine, around, outside, place, self._place)
                for other in np.unique(owner[ghosts])
            ]
            tables.append(table)
            slices.append(Slice(start, start + len(mine), end, end + len(ghosts), exchanges))
            start, end = start + len(mine), end + len(ghosts)
        table = np.concatenate(tables).reshape(-1)
        table[table < 0] = end
        parents = np.zeros(0, dtype=np.uint32)
        if depth + 1 < LEVELS:
            above = self.layers[0].cells
            order = np.argsort(above)
            parent_ids = level.parents[cells]
            parents = order[np.searchsorted(above, parent_ids, sorter=order)].astype(np.uint32)
        put = self._place
        return Layer(
            cells,
            (put(np.zeros(end + 1)), put(np.zeros(end + 1))),
            put(np.zeros(len(cells))),
            put(table.astype(np.uint32)),
            put(level.work[cells].astype(np.uint32)),
            put(parents),
            slices,
        )

    def reset(self) -> None:
        """Set the start values: zero, and a right side without symmetry."""
        for layer in self.layers:
            for values in layer.values:
                values.fill(0.0)
        fine = self.layers[0]
        fine.right[:] = right_side(fine.cells)

    @property
    def values(self) -> Values:
        """The finest values between two cycles, in the order of the finest layer's cells."""
        fine = self.layers[0]
        return fine.values[0][: len(fine.cells)]

    def stages(self, number: int) -> list[list[Call]]:
        """For each stage of the cycle, the calls of the rank with this number."""
        return [self._calls(number, stage) for stage in CYCLE]

    def _calls(self, number: int, stage: Stage) -> list[Call]:
        layer = self.layers[stage.level]
        own = layer.slices[number]
        source, target = layer.values[stage.source], layer.values[1 - stage.source]
        geometry = [own.first, own.last, *layer.size]
        bind = self._kernels.bind
        if not stage.smooths:
            above = self.layers[stage.level + 1]
            parents = above.slices[number]
            bounds = parents.first, parents.last, parents.first_ghost, parents.last_ghost
            return [
                bind("restrict", source, layer.right, layer.table, layer.parents, above.values[0],
                     above.right, scalars([*geometry, *above.size, *bounds]))
            ]  # fmt: skip
        calls = [
            bind("smooth", source, target, layer.right, layer.table, layer.work, scalars(geometry))
        ]
        if stage.prolongs:
            below = self.layers[stage.level - 1]
            children = below.slices[number]
            geometry = [children.first, children.last, *below.size, len(target)]
            calls.append(bind("prolong", target, below.values[0], below.parents, scalars(geometry)))
        return calls

    def packing(self, number: int) -> list[list[Call]]:
        """For each stage, the copies into the buffers of the values that others then need."""
        return [self._copies(number, stage) for stage in CYCLE]

    def _copies(self, number: int, stage: Stage) -> list[Call]:
        if stage.exchange_array < 0:
            return []
        layer = self.layers[stage.exchange_array // 2]
        values = layer.values[stage.exchange_array % 2]
        return [
            self._kernels.bind(
                "gather", values, e.places, e.outgoing, scalars([len(e.places), len(values)])
            )
            for e in layer.slices[number].exchanges
        ]


def _exchange(
    other: int,
    owner: Ids,
    ghosts: Ids,
    start: int,
    mine: Ids,
    around: Ids,
    outside: NDArray[np.bool_],
    place: Ids,
    put: Place,
) -> Exchange:
    first, last = np.searchsorted(owner[ghosts], [other, other + 1])
    # The ghosts of the other rank that I own: my cells that have one of its cells as a neighbour.
    theirs = mine[(outside & (owner[around] == other)).any(axis=1)]
    places = put(np.ascontiguousarray(place[theirs].astype(np.uint32)))
    outgoing = put(np.zeros(len(theirs)))
    return Exchange(other, start + int(first), start + int(last), places, outgoing)


def right_side(cells: Ids) -> Values:
    """The right side of the finest cells."""
    return np.asarray(((cells * 37) % 101 - 50) / 64.0)


def serial(mesh: Mesh, cycles: int) -> Values:
    """The finest values after this number of cycles on one rank; all variants must give them."""
    domain = Domain(mesh, mesh.shares(1), [0])
    calls = [call for stage in domain.stages(0) for call in stage]
    for _ in range(cycles):
        for call in calls:
            call()
    return domain.values
