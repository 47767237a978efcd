"""The contents of a program: its functions, their calls, and the functions that have to wait."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from runner.runtimes.mate.translate.pragmas import Fail, GraphPragma, directive
from runner.runtimes.mate.translate.scopes import (
    BLOCKING,
    CONTAINER_METHODS,
    OBJECTS,
    UNSUPPORTED_NAMES,
    unsupported_words,
)


@dataclass
class Call:
    """A call inside a function: the called name, and the expression through which it is reached."""

    node: cst.Call
    name: str
    base: cst.BaseExpression | None
    inside: str
    """"function", "lambda" or "generator": the innermost construct that holds the call."""


@dataclass
class FunctionParts:
    """One function (None: the module itself) with the constructs directly in it."""

    node: cst.FunctionDef | None
    name: str
    calls: list[Call] = field(default_factory=list)
    yields: bool = False
    graph: bool = False


class Finder(cst.CSTVisitor):
    """Walks a module once; ``functions[0]`` is the module."""

    def __init__(self, fail: Fail) -> None:
        self.fail = fail
        self.functions: list[FunctionParts] = [FunctionParts(None, "")]
        self.modules: set[str] = set()
        """Names that imports bound to modules or to their contents."""
        self.communicators: set[str] = set()
        self.values: dict[str, cst.CSTNode] = {}
        """Names that occur without being called."""
        self._stack: list[FunctionParts] = [self.functions[0]]
        self._inside: list[str] = ["function"]
        self._call_ids: set[int] = set()

    def visit_Import(self, node: cst.Import) -> None:
        self._note_import(node.names)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        if not isinstance(node.names, cst.ImportStar):
            self._note_import(node.names)

    def _note_import(self, names: object) -> None:
        for alias in names if isinstance(names, tuple | list) else ():
            bound = alias.evaluated_alias or alias.evaluated_name.partition(".")[0]
            self.modules.add(bound)

    def visit_For(self, node: cst.For) -> None:
        self._graph(node)

    def visit_If(self, node: cst.If) -> None:
        self._graph(node)

    def _graph(self, node: cst.For | cst.If) -> None:
        if isinstance(directive(node, self.fail)[0], GraphPragma):
            self._stack[-1].graph = True

    def visit_ImportAlias(self, node: cst.ImportAlias) -> bool:
        return False

    def visit_Arg(self, node: cst.Arg) -> None:
        if node.keyword is not None:
            self._call_ids.add(id(node.keyword))

    def visit_Param(self, node: cst.Param) -> None:
        self._call_ids.add(id(node.name))

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._call_ids.add(id(node.name))
        parts = FunctionParts(node, node.name.value)
        self.functions.append(parts)
        self._stack.append(parts)
        self._inside.append("function")
        for parameter in (*node.params.params, *node.params.kwonly_params):
            if parameter.name.value == "comm":
                self.communicators.add("comm")

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._stack.pop()
        self._inside.pop()

    def visit_Lambda(self, node: cst.Lambda) -> None:
        self._inside.append("lambda")

    def leave_Lambda(self, original_node: cst.Lambda) -> None:
        self._inside.pop()

    def visit_GeneratorExp(self, node: cst.GeneratorExp) -> None:
        self._inside.append("generator")

    def leave_GeneratorExp(self, original_node: cst.GeneratorExp) -> None:
        self._inside.pop()

    def visit_Yield(self, node: cst.Yield) -> None:
        self._stack[-1].yields = True

    def visit_Global(self, node: cst.Global) -> None:
        names = ", ".join(item.name.value for item in node.names)
        raise self.fail(node, f"global {names}: all ranks of a process share a module's globals")

    def visit_Assign(self, node: cst.Assign) -> None:
        if is_world(node.value):
            for target in node.targets:
                if isinstance(target.target, cst.Name):
                    self.communicators.add(target.target.value)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        if node.value is not None and is_world(node.value) and isinstance(node.target, cst.Name):
            self.communicators.add(node.target.value)

    def visit_Attribute(self, node: cst.Attribute) -> None:
        name = node.attr.value
        self._call_ids.add(id(node.attr))
        if id(node) in self._call_ids:
            return
        if name in BLOCKING and not self._of_a_module(node.value, name):
            raise self.fail(
                node, f"{name} is used here without being called, so it would not be awaited"
            )
        self.values.setdefault(name, node)

    def visit_Name(self, node: cst.Name) -> None:
        if id(node) not in self._call_ids:
            self.values.setdefault(node.value, node)

    def visit_Call(self, node: cst.Call) -> None:
        function = node.func
        if isinstance(function, cst.Name):
            self._call_ids.add(id(function))
            self._note(node, function.value, None)
        elif isinstance(function, cst.Attribute):
            self._call_ids.add(id(function))
            self._call_ids.add(id(function.attr))
            self._note(node, function.attr.value, function.value)

    def _note(self, node: cst.Call, name: str, base: cst.BaseExpression | None) -> None:
        if base is not None and self._of_a_module(base, name):
            return
        if base is not None and name in UNSUPPORTED_NAMES:
            raise self.fail(node, unsupported_words(name))
        is_communicator = isinstance(base, cst.Name) and base.value in self.communicators
        if (is_communicator or (base is not None and is_world(base))) and name in OBJECTS:
            upper = name.capitalize()
            advice = (
                unsupported_words(upper)
                if upper in UNSUPPORTED_NAMES
                else f"use {upper} with a buffer"
            )
            raise self.fail(node, f"{name} sends pickled objects; {advice}")
        self._stack[-1].calls.append(Call(node, name, base, self._inside[-1]))

    def _of_a_module(self, base: cst.BaseExpression, name: str) -> bool:
        """True if this is a function of an imported module, such as ``threading.Barrier``."""
        own = name in {"local_bcast", "local_barrier"} or is_request(base)
        return isinstance(base, cst.Name) and base.value in self.modules and not own


def is_world(node: cst.CSTNode) -> bool:
    """True if the expression is ``MPI.COMM_WORLD``."""
    return (
        isinstance(node, cst.Attribute)
        and isinstance(node.value, cst.Name)
        and node.value.value == "MPI"
        and node.attr.value == "COMM_WORLD"
    )


def is_request(node: cst.CSTNode) -> bool:
    """True if the expression is the class ``MPI.Request``."""
    return (
        isinstance(node, cst.Attribute)
        and isinstance(node.value, cst.Name)
        and node.value.value == "MPI"
        and node.attr.value == "Request"
    )


@dataclass(frozen=True)
class WaitingFunctions:
    """Names of functions that have to wait, and the calls that must be awaited."""

    functions: frozenset[str]
    calls: frozenset[cst.Call]


def waiting(finder: Finder) -> WaitingFunctions:
    """The closure over calls by name; raises TranslationError for a function that must not wait."""
    names = {f.name for f in finder.functions[1:] if f.graph}
    while True:
        more = {
            f.name
            for f in finder.functions[1:]
            if f.name not in names and any(_waits(call, names) for call in f.calls)
        }
        if not more:
            break
        names |= more
    calls = set()
    for function in finder.functions:
        waiting_calls = [call for call in function.calls if _waits(call, names)]
        if waiting_calls or function.graph:
            _check(finder, function, waiting_calls, names)
        calls |= {call.node for call in waiting_calls}
    for name in names & finder.values.keys():
        raise finder.fail(
            finder.values[name],
            f"{name} waits for messages and is used here without being called, so it would "
            "not be awaited",
        )
    return WaitingFunctions(frozenset(names), frozenset(calls))


def _waits(call: Call, names: set[str]) -> bool:
    return (call.base is not None and call.name in BLOCKING) or call.name in names


def _check(finder: Finder, function: FunctionParts, calls: list[Call], names: set[str]) -> None:
    for call in calls:
        if call.inside != "function":
            what = "a lambda" if call.inside == "lambda" else "a generator expression"
            raise finder.fail(call.node, f"{call.name} may wait, which {what} cannot")
        self_call = isinstance(call.base, cst.Name) and call.base.value in ("self", "cls")
        of_another = call.name in names and call.base is not None and not self_call
        if of_another and call.name in CONTAINER_METHODS:
            raise finder.fail(
                call.node,
                f"{call.name} may be a function of this file that waits or a method of a "
                "container: rename the function",
            )
    node = function.node
    if node is None:
        return
    if function.name.startswith("__") and function.name.endswith("__"):
        raise finder.fail(
            node, f"{function.name} waits for messages, but Python calls it without await"
        )
    if function.yields:
        raise finder.fail(node, f"{function.name} waits for messages and is a generator")
    for decorator in node.decorators:
        target = decorator.decorator
        if not (isinstance(target, cst.Name) and target.value in ("staticmethod", "classmethod")):
            raise finder.fail(
                decorator,
                f"{function.name} waits for messages, but its decorator does not await it",
            )
