"""Compiled graphs: machine code for the compiled regions of a graph, by type of state.

The code is stored, and later runs load it without numba (:mod:`runner.native.kernels`). One object
holds all compiled regions of a graph for one type of state.
"""

from __future__ import annotations

import functools
import hashlib
import re
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runner.errors import RunnerError
from runner.mate.compiled.block import Block, Messages
from runner.mate.compiled.names import resolve
from runner.mate.compiled.source import RegionSource, read
from runner.mate.compiled.state import StateType, state_type
from runner.mate.compiled.uses import Uses, check_calls
from runner.mate.graph import Graph
from runner.native import kernels
from runner.native.machine_code import MachineCode
from runner.native.words import KINDS


class CompiledGraph:
    """The compiled regions of a graph: their checked sources, and their code by type of state."""

    def __init__(self, graph: Graph) -> None:
        """Raises :class:`GraphError` with the user's line for what cannot be compiled."""
        self._name = graph.name
        self._names = tuple(region.name for region in graph.regions)
        self._regions: dict[int, RegionSource] = {}
        self._functions: dict[Callable[..., Any], RegionSource] = {}
        for region in graph.regions:
            if region.compiled:
                found = self._functions.get(region.body)
                source = found or read(region.body, region.name, region=True)
                self._regions[region.index] = self._functions[source.function] = source
        for source in list(self._functions.values()):
            resolve(source, self._functions)
        for source in self._regions.values():
            check_calls(source)
        self._uses = Uses(list(self._regions.values())).attributes
        self._code: dict[StateType, tuple[int | None, ...]] = {}
        self._kernels: list[kernels.Kernels] = []
        self._blocks: dict[tuple[int, int], Block] = {}
        self._lock = threading.Lock()

    def bind(self, state: Any, messages: Messages, rank: int = 0) -> Block:
        """The packed state, read now; call it at every entry of the graph.

        ``messages`` tells how a context's messages are started. Each ``rank`` has blocks of its
        own, which are used again while the state lives. Code is loaded, or compiled if there is
        none, when the first state of a type is bound. Raises :class:`MateError` for a state that
        cannot be packed and :class:`GraphError` for code that cannot be compiled.
        """
        found = self._blocks.get((id(state), rank)) or self._blocks.get((0, rank))
        if found is not None and found.state() is state and found.refresh(messages):
            return found
        with self._lock:
            kind = state_type(state, self._uses, self._code)
            entries = self._code.get(kind)
            if entries is None:
                entries = self._code[kind] = self._load(kind)
        key = (id(state), rank)
        try:
            reference: Callable[[], Any] = weakref.ref(
                state, lambda _: self._blocks.pop(key, None) and None
            )
        except TypeError:  # no weak references to it: only the last one is kept
            key, reference = (0, rank), lambda: state
        block = self._blocks[key] = Block(reference, kind, messages, entries, self._names)
        return block

    def _load(self, kind: StateType) -> tuple[int | None, ...]:
        """The address of each region's entry; None for a Python region."""
        code = kernels.stored(
            f"mate-{_SPECIAL.sub('-', self._name)[:40]}",
            self._key(kind),
            functools.partial(self._compile, kind),
        )
        self._kernels.append(code)
        return tuple(
            code.address(_entry(n)) if n in self._regions else None for n in range(len(self._names))
        )

    def _key(self, kind: StateType) -> bytes:
        """A hash of all that the code depends on, except the compilers and the processor."""
        numbers = {source: n for n, source in enumerate(self._functions.values())}
        words = [str(kind), *(f"{n} {numbers[source]}" for n, source in self._regions.items())]
        for source in numbers:
            words += [source.text, repr(source.function.__defaults__)]
            words += [f"{name}={value!r}" for name, value in sorted(source.constants.items())]
            words += [f"{name}={numbers[h]}" for name, h in sorted(source.helpers.items())]
            words += [f"{name}={_called(v)}" for name, v in sorted(source.libraries.items())]
        digest = hashlib.sha256("\0".join(words).encode())
        digest.update(_own_sources())
        return digest.digest()

    def _compile(self, kind: StateType) -> MachineCode:
        from runner.native.compile import compile_functions, default_numba

        with default_numba():
            from runner.mate.compiled import failure, index, lowering

            made: dict[RegionSource, Any] = {}

            def numba_function(source: RegionSource) -> Any:
                if source not in made:
                    helpers = {h: numba_function(h) for h in source.helpers.values()}
                    made[source] = lowering.dispatcher(
                        index.marked(source, lowering.index, helpers, lowering.count_as),
                        source.function,
                    )
                return made[source]

            entries: dict[str, tuple[Callable[..., Any], str]] = {}
            for number, source in self._regions.items():
                with failure.told(source, self._functions.values(), kind):
                    entry = lowering.compile_region(numba_function(source), kind, number)
                entries[_entry(number)] = (entry, "void(uint64, int64)")
        try:
            return compile_functions(entries, f"graph {self._name}")
        except RunnerError as error:
            found = _REGION.search(str(error))
            if found is None:
                raise
            raise self._regions[int(found[1])].refusal(
                None, f"an operation needs Python when it runs ({found[2]}): write it out as loops"
            ) from None


_SPECIAL = re.compile(r"[^A-Za-z0-9_]+")
_REGION = re.compile(r"kernel region_(\d+) .*?\(([\w, ]+)\)")


def _entry(region: int) -> str:
    return f"region_{region}"


def _called(value: Any) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__name__', value)}"


@functools.cache
def _own_sources() -> bytes:
    """A hash of the modules that turn a region into code."""
    digest = hashlib.sha256(",".join(KINDS).encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.digest()


_graphs: weakref.WeakKeyDictionary[Graph, CompiledGraph] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def compiled_graph(graph: Graph) -> CompiledGraph:
    """The compiled regions of a graph in use; made at the first call, and shared by all ranks.

    Raises :class:`GraphError` with the user's line for what cannot be compiled.
    """
    with _lock:
        found = _graphs.get(graph)
        if found is None:
            found = _graphs[graph] = CompiledGraph(graph)
        return found
