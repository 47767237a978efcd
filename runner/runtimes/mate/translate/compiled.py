"""Regions that can be compiled: each becomes a function of the module, ``region(state, i)``.

``state`` has the variables of the enclosing function. The checks of
:mod:`runner.runtimes.mate.compiled` decide what the function may contain; they see it in its
translated form.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m
import numpy as np

from runner.runtimes.mate.compiled.names import resolve
from runner.runtimes.mate.compiled.source import Refusal, RegionSource, without_types
from runner.runtimes.mate.compiled.uses import Uses, check_calls
from runner.runtimes.mate.errors import GraphError
from runner.runtimes.mate.translate.flow import Flow, parse, read_first
from runner.runtimes.mate.translate.graphs import BLANK, GraphPart, RegionPart, without_waits
from runner.runtimes.mate.translate.messages import CONTEXT, MessageStatements
from runner.runtimes.mate.translate.module import ModuleNames
from runner.runtimes.mate.translate.pragmas import Fail
from runner.runtimes.mate.translate.scopes import VariableChanger, names_in, targets

_LIST_METHODS = frozenset({"append", "clear", "extend", "insert", "pop", "remove", "reverse"})


class PythonRegion(Exception):
    """A region stays a Python function: ``place`` is "file:line"."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason)
        self.place, self.reason = place, reason


@dataclass(frozen=True)
class Enclosing:
    """The functions that enclose a graph, in the original program."""

    function: cst.FunctionDef
    """The one with the graph."""
    bound: frozenset[str]
    """Its names, with its parameters."""
    outer: frozenset[str]
    """Names of the functions around it."""
    graph: cst.CSTNode
    rebound: frozenset[str]
    """Names that inner functions rebind (``nonlocal``)."""


@dataclass(frozen=True)
class OrdinaryProgram:
    """The facts about the program that the functions of all graphs need."""

    names: ModuleNames
    communicators: set[str]
    api: str
    """The name of the runtime's module."""
    state: str
    """The name of the parameter that has the variables of the enclosing function."""
    fail: Fail


class CompiledRegions:
    """Creates the functions of one graph.

    ``old`` is the graph in the original program, ``new`` the one with translated calls.
    """

    def __init__(
        self,
        old: GraphPart,
        new: GraphPart,
        around: Enclosing,
        program: OrdinaryProgram,
    ) -> None:
        # Without its directive a statement is another node, which has no position in the file.
        regions = [dataclasses.replace(r, body=(r.place, *r.body[1:])) for r in old.regions]
        self._old = dataclasses.replace(old, regions=tuple(regions))
        self._new, self._around = new, around
        self._module, self._fail = program.names, program.fail
        self._state, self._api = program.state, program.api
        self._communicators = program.communicators

    def function(self, index: int, name: str) -> cst.FunctionDef:
        """The function ``name`` of a region.

        Raises :class:`PythonRegion` if the region must stay Python.
        """
        old, new = self._old.regions[index], self._new.regions[index]
        others = {n for r in self._new.regions if r is not new for n in targets(r.body)}
        kept_ids = {id(statement) for statement in without_waits(new.body, others)}
        pairs = [(a, b) for a, b in zip(old.body, new.body, strict=True) if id(b) in kept_ids]
        for before, after in pairs:
            if m.findall(after, m.Await()):
                raise self._python(before, "it waits for messages itself")
        messages = MessageStatements(
            self._state, self._api, self._communicators, self._around.bound
        )
        replacements = [(before, messages.statements(after)) for before, after in pairs]
        body = [statement for _, statements in replacements for statement in statements]
        self._check_names(old, body)
        renamer = _Renamer(self._state, self._variables(old, body))
        groups = [
            (before, [_statement(s.visit(renamer)) for s in statements])
            for before, statements in replacements
        ]
        self._check(name, old, groups)
        whole = [statement for _, statements in groups for statement in statements]
        return cst.FunctionDef(
            cst.Name(name),
            cst.Parameters(
                [cst.Param(cst.Name(self._state)), cst.Param(cst.Name(self._old.variable))]
            ),
            cst.IndentedBlock(whole or [cst.parse_statement("pass\n")]),
            leading_lines=[BLANK, BLANK],
        )

    def place(self, index: int) -> cst.CSTNode:
        """The first statement of a region in the original program."""
        return self._old.regions[index].place

    def _python(self, node: cst.CSTNode, reason: str) -> PythonRegion:
        return PythonRegion(self._fail(node, "").place, reason)

    # Names

    def _check_names(self, region: RegionPart, body: Sequence[cst.BaseStatement]) -> None:
        """Refuse names whose values pass between regions, or from here to other code."""
        names, before = names_in(body), names_in(region.body)
        others = [r for r in self._old.regions if r is not region]
        for name in [*before.bound, *names.mentions]:
            if name == self._old.variable:
                continue
            place = _first(name, region.body)
            if name in self._around.outer and name not in self._around.bound:
                raise self._python(place, f"{name} belongs to a function around the graph's one")
            if name in self._around.rebound:
                raise self._python(place, f"{name} is bound anew by another function (nonlocal)")
            if name in before.bound and name not in names.mentions:
                self._check_requests(name, region, others)
            elif name in names.bound:
                if read_first(name, body) or self._read(name, others):
                    raise self._python(
                        place,
                        f"it binds {name}, which is read elsewhere or the next time: use an array "
                        "of one element",
                    )
            elif name in self._around.bound:
                binder = next((r for r in others if names_in(r.body).bound[name]), None)
                if binder is not None:
                    raise self._python(
                        place,
                        f"{name} is bound by region {binder.name} while the graph runs: use "
                        "another name, or an array of one element",
                    )
                changer = next((r for r in others if _changes(name, r.body)), None)
                if changer is not None:
                    raise self._python(
                        place,
                        f"region {changer.name} changes the list {name} while the graph runs: use "
                        "an array",
                    )

    def _check_requests(self, name: str, region: RegionPart, others: Sequence[RegionPart]) -> None:
        """Refuse requests with uses other than the waits that the graph replaces."""
        uses = names_in([self._around.function.body]).mentions[name]
        uses -= names_in(region.body).mentions[name]
        for other, new in zip(self._old.regions, self._new.regions, strict=True):
            if other not in others:
                continue
            bound = {n for r in self._new.regions if r is not new for n in targets(r.body)}
            kept_ids = {id(statement) for statement in without_waits(new.body, bound)}
            waits = [a for a, b in zip(other.body, new.body, strict=True) if id(b) not in kept_ids]
            uses -= names_in(waits).mentions[name]
        if uses:
            raise self._python(
                _first(name, region.body),
                f"the requests {name} are used by other code than a wait of a region",
            )

    def _read(self, name: str, others: Sequence[RegionPart]) -> bool:
        """True if other code may read the value that a region has bound to a name."""
        for other in others:
            if read_first(name, other.body):
                return True
        function = self._around.function
        if _in_inner(name, function):
            return True
        flow = Flow(name)
        return any(
            flow.run(parse(following))
            for following in _paths(function.body, self._around.graph) or ()
        )

    def _variables(self, region: RegionPart, body: Sequence[cst.BaseStatement]) -> set[str]:
        """The names of the enclosing function that a region uses."""
        names = names_in(body)
        own = {*names.bound, self._old.variable}
        variables = {n for n in names.mentions if n in self._around.bound and n not in own}
        for statement in region.body:
            for node in m.findall(statement, m.Call() | m.Attribute()):
                if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
                    if node.func.value in variables:
                        raise self._python(
                            node,
                            f"it calls {node.func.value}, a variable: only functions of a module "
                            "can be compiled",
                        )
                elif isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name):
                    base, name = node.value.value, node.attr.value
                    if base in variables and not hasattr(np.ndarray, name):
                        raise self._python(
                            node,
                            f"{base}.{name} belongs to an object: bind what the region needs of it "
                            "to a name before the graph, as a number or an array",
                        )
        return variables

    # The dialect

    def _check(
        self,
        name: str,
        region: RegionPart,
        groups: Sequence[tuple[cst.CSTNode, list[cst.BaseStatement]]],
    ) -> None:
        """Refuse constructs outside of the dialect of compiled regions."""
        body: list[ast.stmt] = []
        for old, statements in groups:
            body += self._parse(old, statements)
        empty = ast.parse(f"def {name}({self._state}, {self._old.variable}): pass").body[0]
        assert isinstance(empty, ast.FunctionDef)
        first = int(self._fail(region.place, "").place.rpartition(":")[2])
        ast.increment_lineno(empty, first - 1)
        empty.body = without_types(body) or empty.body
        try:
            with self._module.readable():
                function = self._module.function(empty)
                title = f"region {region.name}"
                source = RegionSource(function, title, True, self._module.file, "", empty)
                source.python = True
                resolve(source, {})
                check_calls(source)
                Uses([source])
        except Refusal as refusal:
            file = self._fail(region.place, "").place.rpartition(":")[0]
            reason = refusal.what.replace(f"{self._state}.{CONTEXT}", "comm").replace(
                f"{self._state}.", ""
            )
            if refusal.title != f"region {region.name}":
                reason = f"{refusal.title}: {reason}"
            raise PythonRegion(f"{file}:{refusal.line}", reason) from None
        except (GraphError, SyntaxError, RecursionError) as error:
            raise self._python(region.place, str(error)) from None

    def _parse(self, old: cst.CSTNode, new: Sequence[cst.BaseStatement]) -> list[ast.stmt]:
        """The statements with the line numbers of the one that they replace."""
        place = int(self._fail(old, "").place.rpartition(":")[2])
        code = cst.Module(body=[])
        text = "".join(code.code_for_node(statement) for statement in new)
        last = place + _lines(code.code_for_node(_bare(old))) - 1
        statements = ast.parse(text).body
        offset = place - (statements[0].lineno if statements else 1)
        for statement in statements:
            for node in ast.walk(statement):
                if isinstance(node, ast.expr | ast.stmt):
                    node.lineno = min(node.lineno + offset, last)
                    node.end_lineno = min((node.end_lineno or node.lineno) + offset, last)
        return statements


class _Renamer(VariableChanger):
    """``name`` becomes ``state.name``."""

    def __init__(self, state: str, names: set[str]) -> None:
        super().__init__()
        self._state, self._names = state, names

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        if original_node.value not in self._names:
            return updated_node
        return cst.Attribute(
            cst.Name(self._state),
            cst.Name(original_node.value),
            lpar=updated_node.lpar,
            rpar=updated_node.rpar,
        )


def _statement(node: object) -> cst.BaseStatement:
    assert isinstance(node, cst.BaseStatement)
    return node


def _bare(node: cst.CSTNode) -> cst.CSTNode:
    """The statement without the lines before it."""
    assert isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement)
    return node.with_changes(leading_lines=[])


def _lines(text: str) -> int:
    return max(1, text.rstrip("\n").count("\n") + 1)


def _changes(name: str, body: Sequence[cst.BaseStatement]) -> bool:
    """True if statements call a method that changes a list's length or order."""
    calls = m.Call(m.Attribute(m.Name(name)))
    return any(
        cst.ensure_type(cst.ensure_type(call, cst.Call).func, cst.Attribute).attr.value
        in _LIST_METHODS
        for statement in body
        for call in m.findall(statement, calls)
    )


def _first(name: str, body: Sequence[cst.BaseStatement]) -> cst.CSTNode:
    """The first statement that mentions a name."""
    return next((s for s in body if names_in([s]).mentions[name]), body[0])


def _in_inner(name: str, function: cst.FunctionDef) -> bool:
    """True if a function or lambda inside of a function mentions a name."""
    inner = m.findall(function.body, m.FunctionDef() | m.Lambda() | m.ClassDef())
    return any(names_in([node]).mentions[name] for node in inner)


def _paths(block: cst.BaseSuite, graph: cst.CSTNode) -> list[list[cst.BaseStatement]] | None:
    """The statements that may run after the graph, in order.

    None if the graph is not in the block.
    """
    if not isinstance(block, cst.IndentedBlock):
        return None
    for place, statement in enumerate(block.body):
        if statement is graph:
            return [list(block.body[place + 1 :])]
        if isinstance(statement, cst.FunctionDef | cst.ClassDef):
            continue
        for inner in _blocks(statement):
            paths = _paths(inner, graph)
            if paths is None:
                continue
            if not isinstance(statement, cst.If | cst.With):
                paths.append([statement])  # a loop begins again
            return [*paths, list(block.body[place + 1 :])]
    return None


def _blocks(statement: cst.CSTNode) -> list[cst.BaseSuite]:
    """The blocks of a compound statement, also those of ``else`` and ``except``."""
    blocks: list[cst.BaseSuite] = []
    for child in statement.children:
        if isinstance(child, cst.BaseSuite):
            blocks.append(child)
        elif isinstance(child, cst.If | cst.Else | cst.ExceptHandler | cst.Finally):
            blocks += _blocks(child)
    return blocks
