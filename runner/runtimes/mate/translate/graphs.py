"""Annotated loops as regions: reading and checking them, and creating their local functions.

:func:`read_graph` assigns statements to regions, and refuses impossible ones. :func:`functions`
turns each region into a local function that shares the enclosing function's variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from runner.runtimes.mate.errors import GraphError
from runner.runtimes.mate.graph import Graph
from runner.runtimes.mate.translate.pragmas import (
    Fail,
    GraphPragma,
    Statement,
    directive,
    without_directive,
)
from runner.runtimes.mate.translate.scopes import (
    STARTS,
    BoundNames,
    chains,
    names_in,
    persistent,
    targets,
)


@dataclass(frozen=True)
class RegionPart:
    """One region of a graph: its statements as in the loop."""

    name: str
    depends: tuple[str, ...]
    body: tuple[Statement, ...]
    place: Statement
    """The first statement, as in the loop."""


@dataclass(frozen=True)
class GraphPart:
    """An annotated loop (or block, ``iterations`` None): its variable, its range, its regions."""

    variable: str
    iterations: cst.BaseExpression | None
    regions: tuple[RegionPart, ...]
    remarks: tuple[cst.EmptyLine, ...]
    """The comment after the loop's colon."""
    footer: tuple[cst.EmptyLine, ...]
    """Comments after the last statement."""


def read_graph(node: Statement, fail: Fail) -> GraphPart:
    """The regions of the statement that a graph directive precedes.

    Raises TranslationError if the statement is neither a regular loop nor a block, or if a part of
    it belongs to no region.
    """
    variable: str
    iterations: cst.BaseExpression | None
    if isinstance(node, cst.For):
        variable, iterations = _loop(node, fail)
    elif isinstance(node, cst.If) and m.matches(node.test, m.Name("True")) and node.orelse is None:
        variable, iterations = "_mate_i", None
    else:
        raise fail(
            node,
            "'#pragma mate graph' must stand before 'for NAME in range(...)', or before a block "
            "'if True:'",
        )
    body = node.body
    if not isinstance(body, cst.IndentedBlock):
        raise fail(node, "the body of a graph must be an indented block")
    regions = _regions(body.body, node, fail)
    remark = body.header.comment
    remarks = () if remark is None else (cst.EmptyLine(comment=remark),)
    return GraphPart(variable, iterations, tuple(regions), remarks, tuple(body.footer))


def check_graph(node: Statement, fail: Fail) -> None:
    """Read a graph of the original program; raises TranslationError for forbidden constructs."""
    part = read_graph(node, fail)
    graph = Graph("graph")
    for region in part.regions:
        graph.region(name=region.name, depends=region.depends)(lambda state, i: None)
        for statement in region.body:
            statement.visit(_Leaving(fail))
        if part.variable != "_" and names_in(region.body).bound[part.variable]:
            raise fail(
                region.place,
                f"region {region.name} changes the loop's variable {part.variable}: every region "
                "has its own",
            )
    try:
        graph.edges()
    except GraphError as problem:
        raise fail(node, str(problem).removeprefix("graph graph: ")) from None


def check_variable(function: cst.FunctionDef, graph: Statement, fail: Fail) -> None:
    """Check that the loop's variable is not used after the graph: each region has its own value."""
    target = graph.target if isinstance(graph, cst.For) else None
    if isinstance(target, cst.Name) and target.value != "_":
        function.body.visit(_Uses(target.value, fail))


def _loop(node: cst.For, fail: Fail) -> tuple[str, cst.BaseExpression]:
    if node.orelse is not None:
        raise fail(node, "a graph's loop cannot have an else")
    if not isinstance(node.target, cst.Name):
        raise fail(node, "a graph's loop must have a single variable")
    regular = isinstance(node.iter, cst.Call) and m.matches(node.iter.func, m.Name("range"))
    if not regular:
        raise fail(node, "a graph's loop must be over range(...) with one loop variable")
    return node.target.value, node.iter


def _regions(
    statements: Sequence[cst.BaseStatement], node: cst.CSTNode, fail: Fail
) -> list[RegionPart]:
    regions: list[RegionPart] = []
    for statement in statements:
        assert isinstance(statement, cst.SimpleStatementLine | cst.BaseCompoundStatement)
        pragma, number = directive(statement, fail)
        if isinstance(pragma, GraphPragma):
            raise fail(statement, "a graph inside a graph: they cannot be nested")
        if pragma is None:
            if not regions:
                raise fail(statement, "a statement in a graph outside of every region")
            last = regions[-1]
            regions[-1] = RegionPart(last.name, last.depends, (*last.body, statement), last.place)
            continue
        if any(region.name == pragma.name for region in regions):
            raise fail(statement, f"a second region {pragma.name} in this graph")
        first = without_directive(statement, number)
        regions.append(RegionPart(pragma.name, pragma.depends, (first,), statement))
    if not regions:
        raise fail(node, "a graph without regions; it needs at least one")
    return regions


class _Leaving(cst.CSTVisitor):
    """Refuses statements that would leave a region: it is a function, and others depend on its end.

    Directives deeper inside a region are refused too.
    """

    def __init__(self, fail: Fail) -> None:
        self.fail, self.loops = fail, 0

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement):
            pragma, _ = directive(node, self.fail)
            if pragma is not None:
                what = "graph" if isinstance(pragma, GraphPragma) else "region"
                raise self.fail(node, f"a {what} inside a region: they cannot be nested")
        return super().on_visit(node)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def visit_For(self, node: cst.For) -> None:
        self.loops += 1

    def leave_For(self, original_node: cst.For) -> None:
        self.loops -= 1

    def visit_While(self, node: cst.While) -> None:
        self.loops += 1

    def leave_While(self, original_node: cst.While) -> None:
        self.loops -= 1

    def visit_Return(self, node: cst.Return) -> None:
        raise self.fail(node, "return in a region")

    def visit_Break(self, node: cst.Break) -> None:
        if not self.loops:
            raise self.fail(node, "break in a region: the runtime always runs all iterations")

    def visit_Continue(self, node: cst.Continue) -> None:
        if not self.loops:
            raise self.fail(node, "continue in a region")


class _Uses(cst.CSTVisitor):
    """Refuses the use of a name outside the loops and comprehensions over it."""

    def __init__(self, name: str, fail: Fail) -> None:
        self.name, self.fail = name, fail

    def visit_For(self, node: cst.For) -> bool:
        return not self._bound(node.target)

    def visit_ListComp(self, node: cst.ListComp) -> bool:
        return not self._over(node.for_in)

    def visit_SetComp(self, node: cst.SetComp) -> bool:
        return not self._over(node.for_in)

    def visit_DictComp(self, node: cst.DictComp) -> bool:
        return not self._over(node.for_in)

    def visit_GeneratorExp(self, node: cst.GeneratorExp) -> bool:
        return not self._over(node.for_in)

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        return False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        node.value.visit(self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        if node.value == self.name:
            raise self.fail(
                node,
                f"{self.name} is the variable of a graph's loop and is used outside of it, but "
                "every region has a copy of its own; use another name here",
            )

    def _over(self, loop: cst.CompFor | None) -> bool:
        while loop is not None:
            if self._bound(loop.target):
                return True
            loop = loop.inner_for_in
        return False

    def _bound(self, target: cst.BaseAssignTargetExpression) -> bool:
        return bool(names_in([cst.AssignTarget(target)]).bound[self.name])


BLANK = cst.EmptyLine(indent=False)
ASYNC = cst.Asynchronous(whitespace_after=cst.SimpleWhitespace(" "))


@dataclass(frozen=True)
class LocalFunction:
    """A region's function, and the names that it shares with the enclosing function."""

    function: cst.FunctionDef
    shared_names: frozenset[str]

    @property
    def waits(self) -> bool:
        return self.function.asynchronous is not None


def functions(part: GraphPart, scope: BoundNames) -> list[LocalFunction]:
    """One function per region of a translated graph; ``scope``: names of the enclosing function."""
    local_functions = []
    for region in part.regions:
        others = {n for r in part.regions if r is not region for n in targets(r.body)}
        local_functions.append(_function(region, part.variable, others, scope))
    if part.footer:
        last = local_functions[-1].function
        body = last.body.with_changes(footer=part.footer)
        local_functions[-1] = LocalFunction(
            last.with_changes(body=body), local_functions[-1].shared_names
        )
    return local_functions


def function_name(region: RegionPart) -> str:
    return f"_mate_{region.name}"


def _function(
    region: RegionPart, variable: str, others: set[str], scope: BoundNames
) -> LocalFunction:
    body = without_waits(region.body, others)
    inside = names_in(region.body)
    names = names_in(body)
    shared_names = frozenset(
        name
        for name in names.bound
        if name != variable
        and (scope.mentions[name] > inside.mentions[name] or persistent(name, body))
    )
    if shared_names:
        plain = _AnnotationRemover(shared_names)
        body = [after for s in body if isinstance(after := s.visit(plain), cst.BaseStatement)]
        words = ", ".join(sorted(shared_names))
        body.insert(0, cst.parse_statement(f"nonlocal {words}\n"))
    awaits = any(m.findall(statement, m.Await()) for statement in body)
    function = cst.FunctionDef(
        cst.Name(function_name(region)),
        cst.Parameters([cst.Param(cst.Name(variable))]),
        cst.IndentedBlock(body or [cst.parse_statement("pass\n")]),
        asynchronous=ASYNC if awaits else None,
        leading_lines=[BLANK],
    )
    return LocalFunction(function, shared_names)


class _AnnotationRemover(cst.CSTTransformer):
    """Assignments of shared names without their types: Python has no annotated nonlocal."""

    def __init__(self, shared_names: frozenset[str]) -> None:
        super().__init__()
        self.shared_names = shared_names

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        return False

    def leave_AnnAssign(
        self, original_node: cst.AnnAssign, updated_node: cst.AnnAssign
    ) -> cst.BaseSmallStatement:
        target = updated_node.target
        if not (isinstance(target, cst.Name) and target.value in self.shared_names):
            return updated_node
        if updated_node.value is None:
            return cst.Pass(semicolon=updated_node.semicolon)
        return cst.Assign(
            [cst.AssignTarget(target)], updated_node.value, semicolon=updated_node.semicolon
        )


def without_waits(body: Sequence[cst.BaseStatement], others: set[str]) -> list[cst.BaseStatement]:
    """The statements without the waits for other regions' messages; the graph waits for these."""
    own_targets = targets(body)
    statements: list[cst.BaseStatement] = []
    for statement in body:
        messages = _waits_for(statement)
        if messages and messages & others and not messages & own_targets:
            continue
        statements.append(statement)
    return statements


def _waits_for(statement: cst.BaseStatement) -> set[str]:
    """The messages that a translated statement waits for, if it only waits."""
    if not (isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1):
        return set()
    only = statement.body[0]
    if not (isinstance(only, cst.Expr) and isinstance(only.value, cst.Await)):
        return set()
    call = only.value.expression
    if not (isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute)):
        return set()
    name = call.func.attr.value
    if name == "Wait" and not call.args:
        return chains(call.func.value)
    starts = m.Call(m.Attribute(attr=m.Name(m.MatchIfTrue(lambda n: n in STARTS))))
    if name == "waitall" and len(call.args) == 1 and not m.findall(call, starts):
        return chains(call.args[0].value)
    return set()
