"""Compiled graphs: machine code for the compiled regions of a graph, by type of state.

The code is stored, and later runs load it without numba (:mod:`runner.runtimes.core.kernels`). One
object holds all compiled regions of a graph for one type of state.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runner.errors import RunnerError
from runner.runtimes.core import kernels
from runner.runtimes.core.arena import Arena
from runner.runtimes.core.machine_code import MachineCode
from runner.runtimes.core.sources import sha256
from runner.runtimes.core.words import KINDS
from runner.runtimes.mate.compiled.block import Block, Messages, Regions
from runner.runtimes.mate.compiled.names import resolve
from runner.runtimes.mate.compiled.source import Refusal, RegionSource, read, relative_name
from runner.runtimes.mate.compiled.state import Function, StateType, state_type
from runner.runtimes.mate.compiled.uses import (
    Use,
    Uses,
    check_calls,
    helpers_of,
    merge,
    talks,
    waits,
)
from runner.runtimes.mate.context import process_number
from runner.runtimes.mate.errors import GraphError, MateError
from runner.runtimes.mate.graph import Graph, Region


class CompiledGraph:
    """The compiled regions of a graph: their checked sources, and their code by type of state."""

    def __init__(self, graph: Graph) -> None:
        """Raises :class:`GraphError` with the user's line for code that cannot be compiled.

        An optional region that cannot be compiled becomes one of ``graph.fallbacks``.
        """
        self._graph = weakref.ref(graph)
        self._name = graph.name
        self._names = tuple(region.name for region in graph.regions)
        self._regions: dict[int, RegionSource] = {}
        self._optional: set[int] = set()
        self._functions: dict[Callable[..., Any], RegionSource] = {}
        self._pythonic: dict[Callable[..., Any], RegionSource] = {}
        """The same for functions that keep Python's rules."""
        self._uses: dict[int, dict[str, Use]] = {}
        """Region -> the attributes that it uses."""
        for region in graph.regions:
            if not region.compiled:
                continue
            if region.optional:
                self._optional.add(region.index)
            try:
                self._read(region)
            except GraphError as error:
                if not region.optional:
                    raise
                self._fall_back(region.index, error)
        self._merged_uses: dict[Regions, dict[str, Use]] = {}
        """The attributes that several regions use."""
        self._code: dict[tuple[StateType, Regions], tuple[int | None, ...]] = {}
        self._kernels: dict[tuple[StateType, Regions], kernels.Kernels] = {}
        self._talking: dict[int, bool] = {}
        """Region -> True if it starts messages."""
        self._blocks: dict[tuple[int, int], Block] = {}
        self._lock = threading.Lock()

    def _read(self, region: Region) -> None:
        """Read and check a region and all functions that it calls."""
        # A refused function must not stay among the known ones.
        functions = dict(self._pythonic if region.optional else self._functions)
        source = functions.get(region.body) or read(region.body, region.name, region=True)
        source.python = region.optional
        if source.function not in functions:
            resolve(source, functions)
        check_calls(source)
        self._uses[region.index] = Uses([source]).attributes
        self._regions[region.index] = source
        (self._pythonic if region.optional else self._functions).update(functions)

    def _fall_back(self, region: int, reason: Exception | str) -> None:
        """Record why an optional region runs in Python; the first process reports it, once."""
        graph, name = self._graph(), self._names[region]
        if isinstance(reason, Exception) and isinstance(reason.__cause__, Refusal):
            reason = reason.__cause__
        elif not isinstance(reason, Refusal) and region in self._regions:
            reason = self._regions[region].refusal(None, str(reason))
        what = f"region {name} runs in Python: "
        if isinstance(reason, Refusal):
            inside = "" if reason.title == f"region {name}" else f"{reason.title}: "
            what = f"{relative_name(reason.file)}:{reason.line}: {what}{inside}{reason.what}"
        else:
            what += str(reason)
        if graph is None:
            return
        first = graph.fallbacks.setdefault(name, what) is what
        if first and not process_number():
            sys.stderr.write(f"mate: graph {self._name}: {what}\n")

    def bind(
        self, state: Any, messages: Messages, rank: int = 0, arena: Arena | None = None
    ) -> Block:
        """The packed state, read now; call it at every entry of the graph.

        ``messages`` describes how a context's messages are started. Each ``rank`` has its own
        blocks, which are reused while the state lives. With an arena the words lie there. Code is
        loaded, or else compiled, when the first state of a type is bound. Raises :class:`MateError`
        for a state that cannot be packed and :class:`GraphError` for code that cannot be compiled.
        For optional regions neither is raised: the block has no code for them, so they run in
        Python.
        """
        previous = self._blocks.get((id(state), rank)) or self._blocks.get((0, rank))
        if (
            previous is not None
            and previous.state() is state
            and previous.arena is arena
            and self._complete(previous, state)
            and self._refresh(previous, messages)
        ):
            return previous
        key = (id(state), rank)
        try:
            reference: Callable[[], Any] = weakref.ref(
                state, lambda _: self._blocks.pop(key, None) and None
            )
        except TypeError:  # no weak references to it: only the last one is kept
            key, reference = (0, rank), lambda: state
        block = self._blocks[key] = self._block(state, messages, reference, arena)
        return block

    def for_guests(self, block: Block) -> dict[int, tuple[int, frozenset[str]]]:
        """The regions that workers of other processes can run, if they can reach the arrays.

        They start no messages and call no C functions of the state. Each has a number for its code
        that is equal in all processes, and the attributes that it uses.
        """
        code = self._kernels.get((block.kind, block.regions))
        kinds = dict(block.kind.attributes)
        shareable = {}
        for number in block.regions:
            uses = frozenset(self._uses[number])
            functions = any(isinstance(kinds.get(name), Function) for name in uses)
            if code is None or functions or not block.entry(number) or self._talks(number):
                continue
            name = f"{code.digest} {_entry(number)}".encode()
            shareable[number] = int.from_bytes(sha256(name).digest()[:8], "little") >> 2 | 1, uses
        return shareable

    @functools.cached_property
    def waiting(self) -> list[int]:
        """The regions that wait for messages; they need their own stacks."""
        return [number for number, source in self._regions.items() if waits(source)]

    def refuse_waits(self) -> None:
        """Raise :class:`GraphError` if a region waits for messages."""
        for number in self.waiting:
            raise self._regions[number].refusal(
                None,
                "a region does not wait for its messages: start them with isend and irecv, and do "
                "what needs them in another region that depends on this one",
            )

    def _talks(self, number: int) -> bool:
        if number not in self._talking:
            self._talking[number] = talks(self._regions[number])
        return self._talking[number]

    def _complete(self, block: Block, state: Any) -> bool:
        """True if no further region can be compiled for the state than when the block was
        created."""
        return len(block.regions) == len(self._regions) or block.regions == self._possible(state)

    def _refresh(self, block: Block, messages: Messages) -> bool:
        try:
            return block.refresh(messages)
        except MateError:
            if self._optional:  # a new block leaves out what cannot be compiled
                return False
            raise

    def _block(
        self, state: Any, messages: Messages, reference: Callable[[], Any], arena: Arena | None
    ) -> Block:
        regions = self._possible(state)
        try:
            return self._pack(state, regions, messages, reference, arena)
        except MateError as error:  # a number of more than 64 bits
            wrong = {
                n: use for n in regions if n in self._optional and (use := self._large(state, n))
            }
            if not wrong:
                raise
            for number, use in wrong.items():
                self._fall_back(number, use.source.refusal(use.node, str(error)))
            regions = tuple(n for n in regions if n not in wrong)
            return self._pack(state, regions, messages, reference, arena)

    def _pack(
        self,
        state: Any,
        regions: Regions,
        messages: Messages,
        reference: Callable[[], Any],
        arena: Arena | None,
    ) -> Block:
        kind, entries = self._entries(state, regions)
        block = Block(reference, kind, messages, entries, self._names, regions, arena)
        if (graph := self._graph()) is not None:
            graph.machine_code.update(self._names[n] for n in regions if entries[n])
        return block

    def _large(self, state: Any, region: int) -> Use | None:
        """The first use of an attribute that holds an integer of more than 64 bits."""
        for name, use in self._uses[region].items():
            value = getattr(state, name)
            numbers = value if isinstance(value, list | tuple) else [value]
            if any(isinstance(n, int) and not -(2**63) <= n < 2**63 for n in numbers):
                return use
        return None

    def _possible(self, state: Any) -> Regions:
        """The regions for which this state has all they use."""
        numbers = []
        for number in self._regions:
            if number in self._optional:
                try:
                    self._state_type(state, self._uses[number])
                except MateError as error:
                    self._fall_back(number, error)
                    continue
            numbers.append(number)
        return tuple(numbers)

    def _state_type(self, state: Any, uses: dict[str, Use]) -> StateType:
        return state_type(state, uses, [kind for kind, _ in self._code])

    def _entries(self, state: Any, regions: Regions) -> tuple[StateType, tuple[int | None, ...]]:
        """The type of the state in the view of these regions, and the address of each region's
        code."""
        with self._lock:
            if regions not in self._merged_uses:
                self._merged_uses[regions] = merge(self._uses[number] for number in regions)
            key = self._state_type(state, self._merged_uses[regions]), regions
            entries = self._code.get(key)
            if entries is None:
                entries = self._code[key] = self._load(*key)
        return key[0], entries

    def _load(self, kind: StateType, regions: Regions) -> tuple[int | None, ...]:
        """The address of each region's entry; 0 for an optional region without, None in Python."""
        entries: dict[int, int] = dict.fromkeys(self._optional, 0)
        if regions:
            code = kernels.stored(
                f"mate-{_SPECIAL.sub('-', self._name)[:40]}",
                self._key(kind, regions),
                functools.partial(self._compile, kind, regions),
            )
            self._kernels[kind, regions] = code
            for number in regions:
                if (why := code.missing.get(_entry(number))) is None:
                    entries[number] = code.address(_entry(number))
                else:
                    self._fall_back(number, self._stored_refusal(why))
        return tuple(entries.get(n) for n in range(len(self._names)))

    def _stored_refusal(self, text: str) -> Exception:
        """The refusal stored with the code; its line numbers are relative to its function."""
        place, line, title, what = json.loads(text)
        sources = [*self._functions.values(), *self._pythonic.values()]
        if place is None:
            return GraphError(what, code="mate.not_compilable")
        return Refusal(sources[place].file, sources[place].tree.lineno + line, title, what)

    def _key(self, kind: StateType, regions: Regions) -> bytes:
        """A hash of everything that affects the code, except the compilers and the processor."""
        sources = [*self._functions.values(), *self._pythonic.values()]
        numbers = {source: n for n, source in enumerate(sources)}
        words = [str(kind), *(f"{n} {numbers[self._regions[n]]}" for n in regions)]
        for source in sources:
            words += [source.text, repr(source.function.__defaults__)]
            words += [f"{source.python} {sorted((source.jit or {}).items())}"]
            words += [f"{name}={value!r}" for name, value in sorted(source.constants.items())]
            words += [f"{name}={numbers[h]}" for name, h in sorted(source.helpers.items())]
            words += [
                f"{name}={_qualified_name(v)}" for name, v in sorted(source.libraries.items())
            ]
        digest = hashlib.sha256("\0".join(words).encode())
        digest.update(_own_sources())
        return digest.digest()

    def _compile(self, kind: StateType, regions: Regions) -> MachineCode:
        from runner.runtimes.core.compile import compile_functions, default_numba

        with default_numba():
            from runner.runtimes.mate.compiled import (
                context_methods,
                failure,
                index,
                lowering,
                narrow,
            )

            dispatchers: dict[RegionSource, Any] = {}

            def numba_function(source: RegionSource) -> Any:
                if source not in dispatchers:
                    helpers = {h: numba_function(h) for h in source.helpers.values()}
                    count_as = context_methods.count_as
                    function = index.with_index(source, lowering.index, helpers, count_as)
                    dispatchers[source] = lowering.dispatcher(function, source)
                return dispatchers[source]

            def entry_of(number: int) -> Callable[..., Any]:
                source = self._regions[number]
                functions = (*self._functions.values(), *self._pythonic.values())
                with failure.user_errors(source, functions, kind):
                    entry = lowering.compile_region(numba_function(source), kind, number)
                for function in (source, *helpers_of(source)):
                    if function.python:
                        narrow.check(function, dispatchers[function])
                return entry

            entries: dict[str, tuple[Callable[..., Any], str]] = {}
            missing: dict[str, str] = {}
            for number in regions:
                try:
                    entries[_entry(number)] = (entry_of(number), "void(uint64, int64)")
                except Exception as error:  # also those of the compiler itself
                    if number not in self._optional:
                        raise
                    missing[_entry(number)] = self._refusal_text(error)
        while True:
            try:
                code = compile_functions(entries, f"graph {self._name}")
            except RunnerError as error:
                match = _REGION.search(str(error))
                if match is None:
                    raise
                refusal = self._regions[int(match[1])].refusal(
                    None,
                    f"an operation needs Python when it runs ({match[2]}): write it out as loops",
                )
                if int(match[1]) not in self._optional:
                    raise refusal from None
                del entries[_entry(int(match[1]))]
                missing[_entry(int(match[1]))] = self._refusal_text(refusal)
            else:
                code.missing = missing
                return code

    def _refusal_text(self, error: Exception) -> str:
        """A refusal as text that is valid for all programs with the same functions."""
        if not isinstance(error, Refusal):
            first = str(error).partition("\n")[0]
            return json.dumps([None, 0, "", f"{type(error).__name__}: {first}"])
        sources = [*self._functions.values(), *self._pythonic.values()]
        for place, source in enumerate(sources):
            last = source.tree.end_lineno or source.tree.lineno
            if source.file == error.file and source.tree.lineno <= error.line <= last:
                line = error.line - source.tree.lineno
                return json.dumps([place, line, error.title, error.what])
        return json.dumps([None, 0, "", str(error)])


_SPECIAL = re.compile(r"[^A-Za-z0-9_]+")
_REGION = re.compile(r"kernel region_(\d+) .*?\(([\w, ]+)\)")


def _entry(region: int) -> str:
    return f"region_{region}"


def _qualified_name(value: Any) -> str:
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
    """The compiled regions of a graph in use; created at the first call, and shared by all ranks.

    Raises :class:`GraphError` with the user's line for code that cannot be compiled.
    """
    with _lock:
        compiled = _graphs.get(graph)
        if compiled is None:
            compiled = _graphs[graph] = CompiledGraph(graph)
        return compiled
