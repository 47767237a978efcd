"""One rank's cells on all levels: values, kernels bound to them, and messages to other ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.apps.flowcart.mesh import LEVELS, Ids, Mesh
from runner.native.kernels import Kernels, load, scalars

Values = NDArray[np.float64]
Call = Callable[[], None]
SMOOTHINGS = 2
COARSE = 6
"""Number of updates on the coarsest level."""


def program() -> list[tuple[str, int, bool]]:
    """One V-cycle: (step, level, whether the ghosts must be filled before)."""
    down = []
    for level in range(LEVELS - 1):
        down += [("smooth", level, True)] * SMOOTHINGS
        down += [("residual", level, True), ("restrict", level, False)]
    up = []
    for level in range(LEVELS - 2, -1, -1):
        up += [("prolong", level, False), *([("smooth", level, True)] * SMOOTHINGS)]
    return [*down, *([("smooth", LEVELS - 1, True)] * COARSE), *up]


@dataclass
class Exchange:
    """The exchange with one other rank on one level: buffers, and the copies to and from them."""

    rank: int
    outgoing: Values
    incoming: Values
    pack: Call
    unpack: Call


class Part:
    """One level of a domain: own cells first, then ghosts, then the zero of the boundary."""

    def __init__(
        self, mesh: Mesh, owners: list[Ids], depth: int, rank: int, kernels: Kernels
    ) -> None:
        level, owner = mesh.levels[depth], owners[depth]
        self.cells = np.flatnonzero(owner == rank)
        count = len(self.cells)
        around = level.neighbours[self.cells]
        ghosts = np.unique(around[(around >= 0) & (owner[around] != rank)])
        place = np.full(level.count + 1, count + len(ghosts), dtype=np.int64)
        place[self.cells] = np.arange(count)
        place[ghosts] = count + np.arange(len(ghosts))
        self.values = np.zeros(count + len(ghosts) + 1)
        self.right = np.zeros(count)
        self.rest = np.zeros(count)
        self._new = np.zeros(count)
        table = np.ascontiguousarray(place[around].reshape(-1).astype(np.uint64))
        work = np.ascontiguousarray(level.work[self.cells].astype(np.uint64))
        geometry = scalars([count, len(self.values)])
        self.smooth = kernels.bind(
            "smooth", self.values, self.right, self._new, table, work, geometry
        )
        self.residual = kernels.bind(
            "residual", self.values, self.right, self.rest, table, geometry
        )
        self.exchanges = [
            self._exchange(int(other), level.neighbours, owner, place, ghosts, rank, kernels)
            for other in np.unique(owner[ghosts])
        ]

    def _exchange(
        self,
        other: int,
        neighbours: Ids,
        owner: Ids,
        place: Ids,
        ghosts: Ids,
        rank: int,
        kernels: Kernels,
    ) -> Exchange:
        theirs = ghosts[owner[ghosts] == other]
        # The ghosts of the other rank that I own: my cells that have one of its cells as a
        # neighbour.
        around = neighbours[self.cells]
        mine = self.cells[((around >= 0) & (owner[around] == other)).any(axis=1)]
        outgoing, incoming = np.zeros(len(mine)), np.zeros(len(theirs))
        out, back = (np.ascontiguousarray(place[i].astype(np.uint64)) for i in (mine, theirs))
        length = len(self.values)
        return Exchange(
            other,
            outgoing,
            incoming,
            kernels.bind("gather", self.values, outgoing, out, scalars([len(mine), length])),
            kernels.bind("scatter", self.values, incoming, back, scalars([len(theirs), length])),
        )


class Domain:
    """One rank; ``run(what, level)`` executes one step of :func:`program`."""

    def __init__(self, mesh: Mesh, owners: list[Ids], rank: int) -> None:
        kernels = load("runner.apps.flowcart.kernels")
        self.levels = [Part(mesh, owners, depth, rank, kernels) for depth in range(LEVELS)]
        self._calls: dict[tuple[str, int], Call] = {}
        for depth, part in enumerate(self.levels):
            self._calls["smooth", depth] = part.smooth
            self._calls["residual", depth] = part.residual
            if depth + 1 == LEVELS:
                continue
            above = self.levels[depth + 1]
            local = np.searchsorted(above.cells, mesh.levels[depth].parents[part.cells])
            parents = np.ascontiguousarray(local.astype(np.uint64))
            down = scalars([len(part.cells), len(above.cells), len(above.values)])
            up = scalars([len(part.cells), len(above.cells), len(part.values)])
            self._calls["restrict", depth] = kernels.bind(
                "restrict", part.rest, above.right, above.values, parents, down
            )
            self._calls["prolong", depth] = kernels.bind(
                "prolong", above.values, part.values, parents, up
            )
        self.reset()

    def reset(self) -> None:
        """Set the start values: zero, and a right side without symmetry."""
        for part in self.levels:
            part.values.fill(0.0)
        fine = self.levels[0]
        fine.right[:] = ((fine.cells * 37) % 101 - 50) / 64.0

    def call(self, what: str, level: int) -> Call:
        return self._calls[what, level]

    def square(self) -> float:
        """Sum of the squares of the finest residuals; the ghosts must be filled before."""
        self.levels[0].residual()
        return float(np.sum(np.square(self.levels[0].rest)))


def serial(mesh: Mesh, cycles: int) -> Values:
    """The finest values after this number of cycles on one rank; all variants must give them."""
    domain = Domain(mesh, mesh.shares(1), 0)
    for _ in range(cycles):
        for what, level, _ghosts in program():
            domain.call(what, level)()
    return domain.levels[0].values[: len(domain.levels[0].cells)]
