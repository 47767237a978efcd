"""The attributes of the state that compiled functions use, and how.

The state may only be used as ``part.name``, or be passed to a function: so the needed attributes of
a graph are known before compiling, and only these are read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from runner.runtimes.mate.compiled.source import RegionSource, dotted_name

BLOCKING = ("send", "recv", "wait", "post", "take")
"""Methods only for a region with its own stack (:mod:`runner.runtimes.core.fiber`)."""
MESSAGES = ("isend", "irecv", *BLOCKING)
CLOCKS = ("seconds", "cpu_seconds")
METHODS = (*MESSAGES, *CLOCKS, "buffering")
"""Methods of the context that compiled code can use; the last one as ``with ctx.buffering():``."""
_RANGES = ("range", "prange", "uint64", "int64")


@dataclass(frozen=True)
class Role:
    """How the items of a list are used: as numbers, or as arrays with this many indices."""

    ndim: int
    """0 for numbers."""
    whole: bool = False
    """True if elements of the arrays are used as integers: as indices, or in a range."""
    parts: tuple[Role | None, ...] = ()
    """Of tuples: how each place is used."""


@dataclass(eq=False)
class Use:
    """The places where compiled functions use one attribute of the state."""

    source: RegionSource
    node: ast.AST
    """The first place."""
    members: dict[str, tuple[RegionSource, ast.AST]] = field(default_factory=dict)
    """``x`` of ``part.name.x`` -> its first place."""
    role: Role | None = None
    """The use of the items; None if unknown."""


class Uses:
    """The attributes of the state that the functions reached from ``regions`` use."""

    def __init__(self, regions: list[RegionSource]) -> None:
        self.attributes: dict[str, Use] = {}
        self._pairs: set[tuple[int, str]] = set()
        for region in regions:
            self._function(region, region.parameters[0])

    def _function(self, source: RegionSource, state: str) -> None:
        """Collect the uses in a function whose parameter ``state`` is the state."""
        if (id(source), state) in self._pairs:
            return
        self._pairs.add((id(source), state))
        parents = _parents(source.tree)
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.Name) or node.id != state:
                continue
            parent = parents[node]
            if isinstance(parent, ast.Attribute):
                self._attribute(source, parent, parents)
            elif (parameter := _parameter(source, parents, node)) is not None:
                self._function(*parameter)
            else:
                raise source.refusal(
                    node,
                    f"the state is used by itself here: use {state}.NAME, or hand {state} to a "
                    "function that is compiled too",
                )

    def _attribute(
        self, source: RegionSource, node: ast.Attribute, parents: dict[ast.AST, ast.AST]
    ) -> None:
        use = self.attributes.setdefault(node.attr, Use(source, node))
        for place in _aliases(source, node, parents):
            parent = parents[place]
            if isinstance(parent, ast.Attribute):
                use.members.setdefault(parent.attr, (source, parent))
                _check_method(source, parent, parents)
        for role in _roles_of_items(source, node, parents, 0):
            use.role = _join(use.role, role)


def merge(uses: Iterable[dict[str, Use]]) -> dict[str, Use]:
    """The uses of several regions merged: the first place, all members, the largest role."""
    uses_by_name: dict[str, Use] = {}
    for one in uses:
        for name, use in one.items():
            if name not in uses_by_name:
                uses_by_name[name] = Use(use.source, use.node, dict(use.members), use.role)
                continue
            whole = uses_by_name[name]
            whole.members = {**use.members, **whole.members}
            whole.role = _join(whole.role, use.role)
    return uses_by_name


def _join(one: Role | None, other: Role | None) -> Role | None:
    if one is None or other is None:
        return one or other
    parts = one.parts or other.parts
    if one.parts and len(one.parts) == len(other.parts):
        parts = tuple(_join(a, b) for a, b in zip(one.parts, other.parts, strict=True))
    return Role(max(one.ndim, other.ndim), one.whole or other.whole, parts)


def helpers_of(source: RegionSource) -> Iterator[RegionSource]:
    """All functions that a function calls, directly or through others (it does not call itself)."""
    for helper in source.helpers.values():
        yield helper
        yield from helpers_of(helper)


def talks(source: RegionSource) -> bool:
    """True if a region, or a function that it calls, starts messages."""
    return _calls(source, MESSAGES)


def waits(source: RegionSource) -> bool:
    """True if a region, or a function that it calls, waits for messages."""
    return _calls(source, BLOCKING)


def _calls(source: RegionSource, methods: tuple[str, ...]) -> bool:
    """True if methods of the context are used; a function of a module may have the same name."""
    return any(
        isinstance(node, ast.Attribute) and node.attr in methods and function.helper(node) is None
        for function in (source, *helpers_of(source))
        for node in ast.walk(function.tree)
    )


def check_calls(source: RegionSource, path: tuple[RegionSource, ...] = ()) -> None:
    """Raise :class:`GraphError` for a function that calls itself, directly or through others."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and (helper := source.helper(node.func)):
            if helper is source or helper in path:
                name = helper.function.__name__
                raise source.refusal(
                    node, f"{name} calls itself, which cannot be compiled: write a loop"
                )
            check_calls(helper, (*path, source))


def _check_method(
    source: RegionSource, node: ast.Attribute, parents: dict[ast.AST, ast.AST]
) -> None:
    call = parents[node]
    if node.attr == "buffering" and not isinstance(parents[call], ast.withitem):
        raise source.refusal(node, "buffering is used by itself: write with ctx.buffering():")
    if node.attr in MESSAGES and not (
        isinstance(call, ast.Call) and call.func is node and isinstance(parents[call], ast.Expr)
    ):
        raise source.refusal(
            node,
            f"{node.attr} gives nothing in compiled code: write the call as a statement; the "
            "message belongs to the region, and dependents wait for it",
        )


def _parents(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def _parameter(
    source: RegionSource, parents: dict[ast.AST, ast.AST], node: ast.AST
) -> tuple[RegionSource, str] | None:
    """The function and its parameter that gets ``node``, if it is an argument of a call."""
    parent = parents[node]
    name = parent.arg if isinstance(parent, ast.keyword) else None
    call = parents[parent] if name else parent
    if isinstance(call, ast.Call) and (helper := source.helper(call.func)):
        names = helper.parameters
        if name:
            return (helper, name) if name in names else None
        for position, argument in enumerate(call.args):
            if argument is node and position < len(names):
                return helper, names[position]
    return None


def _aliases(
    source: RegionSource, node: ast.expr, parents: dict[ast.AST, ast.AST]
) -> Iterator[ast.expr]:
    """The expression, and every use of the name if it is assigned to one."""
    yield node
    parent = parents[node]
    if isinstance(parent, ast.Assign):
        names = {t.id for t in parent.targets if isinstance(t, ast.Name)}
        for target in parent.targets:
            # a, b = part.x, part.y
            if isinstance(target, ast.Name) and target.id in names:
                yield from _loads(source, target.id)
    elif isinstance(parent, ast.Tuple) and isinstance(outer := parents[parent], ast.Assign):
        position = next(n for n, e in enumerate(parent.elts) if e is node)
        for target in outer.targets:
            if isinstance(target, ast.Tuple) and position < len(target.elts):
                name = target.elts[position]
                if isinstance(name, ast.Name):
                    yield from _loads(source, name.id)


def _loads(source: RegionSource, name: str) -> Iterator[ast.Name]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            yield node


def _roles_of_items(
    source: RegionSource, sequence: ast.expr, parents: dict[ast.AST, ast.AST], depth: int
) -> Iterator[Role]:
    """The use of a list's items, followed through names and calls."""
    for place in _aliases(source, sequence, parents):
        parent = parents[place]
        if isinstance(parent, ast.Subscript) and parent.value is place:
            yield from _roles(source, parent, parents, depth)
        elif isinstance(item := _loop_variable(place, parents), ast.Name):
            for node in _loads(source, item.id):
                yield from _roles(source, node, parents, depth)
        elif isinstance(item, ast.Tuple):
            yield Role(1, parts=tuple(_role(source, e, parents, depth) for e in item.elts))
        elif (parameter := _parameter(source, parents, place)) is not None and depth < 5:
            helper, name = parameter
            inner = _parents(helper.tree)
            for node in _loads(helper, name):
                yield from _roles_of_items(helper, node, inner, depth + 1)


def _role(
    source: RegionSource, target: ast.expr, parents: dict[ast.AST, ast.AST], depth: int
) -> Role | None:
    """The use of a variable."""
    whole: Role | None = None
    for node in _loads(source, target.id) if isinstance(target, ast.Name) else ():
        for role in _roles(source, node, parents, depth):
            whole = _join(whole, role)
    return whole


def _loop_variable(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> ast.AST | None:
    """The target of a loop over ``node``, also through ``zip`` and ``enumerate``."""
    parent = parents[node]
    if isinstance(parent, ast.For) and parent.iter is node:
        return parent.target
    if not isinstance(parent, ast.Call) or not isinstance(node, ast.expr):
        return None
    if node not in parent.args:
        return None
    bound = _loop_variable(parent, parents)
    if not isinstance(bound, ast.Tuple):
        return None
    position = {"zip": parent.args.index(node), "enumerate": 1}.get(dotted_name(parent.func))
    if position is None or position >= len(bound.elts):
        return None
    return bound.elts[position]


def _is_whole(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """True if an expression is a part of an index, or a bound of a range."""
    parent = parents[node]
    while isinstance(parent, ast.BinOp | ast.UnaryOp | ast.Tuple | ast.Slice):
        node, parent = parent, parents[parent]
    if isinstance(parent, ast.Call):
        return node in parent.args and dotted_name(parent.func).rpartition(".")[2] in _RANGES
    return isinstance(parent, ast.Subscript) and parent.slice is node


def _roles(
    source: RegionSource, item: ast.expr, parents: dict[ast.AST, ast.AST], depth: int
) -> Iterator[Role]:
    for place in _aliases(source, item, parents):
        parent = parents[place]
        match parent:
            case ast.Subscript() if parent.value is place:
                index = parent.slice
                ndim = len(index.elts) if isinstance(index, ast.Tuple) else 1
                yield Role(ndim, _is_whole(parent, parents))
            case ast.Attribute():
                yield Role(1)
            case ast.For() if parent.iter is place:
                yield Role(1)
            case ast.Call() if dotted_name(parent.func).rpartition(".")[2] in MESSAGES:
                yield Role(1 if parent.args and parent.args[0] is place else 0)
            case ast.Call() | ast.keyword() if parameter := _parameter(source, parents, place):
                if depth < 5:
                    helper, name = parameter
                    inner = _parents(helper.tree)
                    for node in _loads(helper, name):
                        yield from _roles(helper, node, inner, depth + 1)
            case ast.Call() if dotted_name(parent.func) == "len":
                yield Role(1)
            case ast.Tuple() if isinstance(parents[parent], ast.Subscript):
                yield Role(0)
            case ast.keyword() | ast.Assign() | ast.Tuple() | ast.Expr():
                if isinstance(parent, ast.keyword) and parent.arg in ("dest", "source", "tag"):
                    yield Role(0)
            case _:
                yield Role(0)
