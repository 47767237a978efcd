"""The description of a graph: its regions and their dependencies (Martin 2018, chapter 3).

A description is created once and shared by all ranks. The progress of each rank is in
:mod:`runner.runtimes.mate.task`.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from runner.runtimes.mate.errors import GraphError

Body = TypeVar("Body", bound=Callable[..., Any])

IF_POSSIBLE = "if possible"
_CHECK = os.environ.get("MATE_CHECK") == "1"
"""True if compiled regions run in Python, with every index checked."""
_DEPENDENCY = re.compile(r"\s*([A-Za-z_]\w*)\s*(|\*|@|\*@|@\*)\s*")


@dataclass(frozen=True)
class Dependency:
    """One entry of ``depends``: a region of this or the previous iteration, own or neighbours'."""

    name: str
    previous: bool = False
    neighbors: bool = False

    def __str__(self) -> str:
        return self.name + "*" * self.previous + "@" * self.neighbors


def parse_dependency(text: str) -> Dependency:
    """``"compute*@"`` as a :class:`Dependency`; raises :class:`GraphError` for any other form."""
    match = _DEPENDENCY.fullmatch(text)
    if match is None:
        raise GraphError(
            f"dependency {text!r} is not understood: expected a region's name, then '*' for the "
            "previous iteration and '@' for the neighbours, each at most once",
            code="mate.graph",
        )
    return Dependency(match[1], "*" in match[2], "@" in match[2])


@dataclass(frozen=True)
class Edge:
    """Region ``target`` depends on region ``source``, ``delay`` iterations back (0 or 1)."""

    target: int
    source: int
    delay: int
    neighbors: bool


@dataclass(frozen=True)
class Region:
    """A named piece of a rank's work; ``body(state, iteration)``."""

    index: int
    name: str
    body: Callable[..., Any]
    depends: tuple[Dependency, ...]
    is_async: bool
    priority: int = 0
    """Of several ready regions, the one with the highest priority runs first."""
    compiled: bool = False
    """Runs as machine code, made from the body's source (:mod:`runner.runtimes.mate.compiled`)."""
    optional: bool = False
    """A compiled region that runs in Python if it cannot be compiled."""


def _with_index_check(region: Region) -> Region:
    """A compiled region as a Python region; it refuses negative indices unless it is optional."""
    if region.optional:
        return replace(region, compiled=False)
    from runner.runtimes.mate.compiled.index import with_index_check  # it imports this module

    return replace(region, body=with_index_check(region.body, region.name), compiled=False)


class Graph:
    """Regions with dependencies between them; ``name`` is for messages and logs."""

    def __init__(self, name: str = "graph") -> None:
        self.name = name
        self.regions: list[Region] = []
        self.machine_code: set[str] = set()
        """Names of the regions that have run as machine code in this process."""
        self.fallbacks: dict[str, str] = {}
        """Region of ``compiled="if possible"`` -> why it has run in Python in this process."""
        self._edges: tuple[Edge, ...] | None = None

    def region(
        self,
        name: str | None = None,
        depends: Iterable[str] = (),
        *,
        priority: int = 0,
        compiled: bool | str = False,
    ) -> Callable[[Body], Body]:
        """Decorator that adds a function as a region; ``name`` replaces the function's name.

        Names in ``depends`` may refer to regions added later. Of several ready regions of a rank,
        the one with the highest ``priority`` runs first, then the one added first; a rank with a
        ready region of a priority above 0 overtakes other ready ranks. ``compiled``: the function
        follows README.md on compiled regions, and runs as machine code. ``compiled="if possible"``:
        it keeps the rules of Python, and runs in Python if it cannot be compiled. Raises
        :class:`GraphError` for a malformed dependency, a second region of the same name, a compiled
        ``async def``, another value of ``compiled``, or a graph already in use.
        """
        if compiled not in (True, False, IF_POSSIBLE):
            raise GraphError(
                f"graph {self.name}: compiled={compiled!r} is not understood: expected True, False "
                f"or {IF_POSSIBLE!r}",
                code="mate.graph",
            )
        optional = compiled == IF_POSSIBLE
        if isinstance(depends, str):
            raise GraphError(
                f"graph {self.name}: depends={depends!r} must be a list of strings",
                code="mate.graph",
            )
        dependencies = tuple(dict.fromkeys(parse_dependency(d) for d in depends))

        def add(body: Body) -> Body:
            region_name = name or body.__name__
            if self._edges is not None:
                raise GraphError(
                    f"graph {self.name} is in use: region {region_name} comes too late",
                    code="mate.graph",
                )
            if any(r.name == region_name for r in self.regions):
                raise GraphError(
                    f"graph {self.name} has two regions called {region_name}", code="mate.graph"
                )
            is_async = inspect.iscoroutinefunction(body)
            if compiled and is_async and not optional:
                raise GraphError(
                    f"graph {self.name}: region {region_name} is async, and compiled code does not "
                    "wait: leave out compiled=True, or write def",
                    code="mate.graph",
                )
            number = len(self.regions)
            code = bool(compiled) and not is_async
            region = Region(
                number, region_name, body, dependencies, is_async, priority, code, optional
            )
            self.regions.append(_with_index_check(region) if code and _CHECK else region)
            return body

        return add

    def edges(self) -> tuple[Edge, ...]:
        """All dependencies, with regions as indices, in the order in which they were written.

        Raises :class:`GraphError` for an unknown region, and for regions that can never run because
        they wait for each other in the same iteration.
        """
        if self._edges is None:
            if not self.regions:
                raise GraphError(f"graph {self.name} has no regions", code="mate.graph")
            index = {r.name: r.index for r in self.regions}
            edges = tuple(self._edge(r, d, index) for r in self.regions for d in r.depends)
            self._refuse_cycle(edges)
            self._edges = edges
        return self._edges

    @property
    def compiled(self) -> bool:
        """True if a region is compiled."""
        return any(region.compiled for region in self.regions)

    def order(self) -> list[int]:
        """The regions in the order in which they run if several are ready."""
        return sorted(range(len(self.regions)), key=lambda n: (-self.regions[n].priority, n))

    def table(self) -> dict[str, list[tuple[int, int, bool]]]:
        """Own and inter-rank dependencies as (dependent, dependency, previous iteration)."""
        table: dict[str, list[tuple[int, int, bool]]] = {"own": [], "neighbors": []}
        for edge in self.edges():
            kind = "neighbors" if edge.neighbors else "own"
            table[kind].append((edge.target, edge.source, edge.delay == 1))
        return table

    def _edge(self, region: Region, dependency: Dependency, index: dict[str, int]) -> Edge:
        if dependency.name not in index:
            raise GraphError(
                f"graph {self.name}: region {region.name} depends on {dependency}, but there is no "
                f"region {dependency.name}; there are {', '.join(index)}",
                code="mate.graph",
            )
        return Edge(
            region.index, index[dependency.name], int(dependency.previous), dependency.neighbors
        )

    def _refuse_cycle(self, edges: tuple[Edge, ...]) -> None:
        waits: dict[int, set[int]] = {r.index: set() for r in self.regions}
        for edge in edges:
            if not edge.neighbors and edge.delay == 0:
                waits[edge.target].add(edge.source)
        while free := [r for r, sources in waits.items() if not sources]:
            for region in free:
                del waits[region]
            for sources in waits.values():
                sources.difference_update(free)
        if waits:
            names = ", ".join(self.regions[r].name for r in waits)
            raise GraphError(
                f"graph {self.name}: {names} can never run: they wait for each other in the same "
                "iteration; one of the dependencies needs '*'",
                code="mate.graph",
            )
