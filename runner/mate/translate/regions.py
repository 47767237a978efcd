"""Regions as local functions that share the enclosing function's variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from runner.mate.translate.graphs import GraphPart, RegionPart
from runner.mate.translate.names import STARTS
from runner.mate.translate.scopes import Names, chains, names_in, persistent, targets

BLANK = cst.EmptyLine(indent=False)
ASYNC = cst.Asynchronous(whitespace_after=cst.SimpleWhitespace(" "))


@dataclass(frozen=True)
class Local:
    """A region's function, and the names that it shares with what is around it."""

    function: cst.FunctionDef
    shared: frozenset[str]

    @property
    def waits(self) -> bool:
        return self.function.asynchronous is not None


def functions(part: GraphPart, scope: Names) -> list[Local]:
    """One for each region of a translated graph; ``scope``: names of the enclosing function."""
    found = []
    for region in part.regions:
        others = {n for r in part.regions if r is not region for n in targets(r.body)}
        found.append(_function(region, part.variable, others, scope))
    if part.footer:
        last = found[-1].function
        body = last.body.with_changes(footer=part.footer)
        found[-1] = Local(last.with_changes(body=body), found[-1].shared)
    return found


def function_name(region: RegionPart) -> str:
    return f"_mate_{region.name}"


def _function(region: RegionPart, variable: str, others: set[str], scope: Names) -> Local:
    body = _without_waits(region.body, others)
    inside = names_in(region.body)
    here = names_in(body)
    shared = frozenset(
        name
        for name in here.bound
        if name != variable
        and (scope.mentioned[name] > inside.mentioned[name] or persistent(name, body))
    )
    if shared:
        plain = _Unannotated(shared)
        body = [changed for s in body if isinstance(changed := s.visit(plain), cst.BaseStatement)]
        words = ", ".join(sorted(shared))
        body.insert(0, cst.parse_statement(f"nonlocal {words}\n"))
    awaits = any(m.findall(statement, m.Await()) for statement in body)
    function = cst.FunctionDef(
        cst.Name(function_name(region)),
        cst.Parameters([cst.Param(cst.Name(variable))]),
        cst.IndentedBlock(body or [cst.parse_statement("pass\n")]),
        asynchronous=ASYNC if awaits else None,
        leading_lines=[BLANK],
    )
    return Local(function, shared)


class _Unannotated(cst.CSTTransformer):
    """Assignments of shared names without their types: Python has no annotated nonlocal."""

    def __init__(self, shared: frozenset[str]) -> None:
        super().__init__()
        self.shared = shared

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        return False

    def leave_AnnAssign(
        self, original_node: cst.AnnAssign, updated_node: cst.AnnAssign
    ) -> cst.BaseSmallStatement:
        target = updated_node.target
        if not (isinstance(target, cst.Name) and target.value in self.shared):
            return updated_node
        if updated_node.value is None:
            return cst.Pass(semicolon=updated_node.semicolon)
        return cst.Assign(
            [cst.AssignTarget(target)], updated_node.value, semicolon=updated_node.semicolon
        )


def _without_waits(body: Sequence[cst.BaseStatement], others: set[str]) -> list[cst.BaseStatement]:
    """The statements, but for those that wait for other regions' messages: the graph does that."""
    here = targets(body)
    kept: list[cst.BaseStatement] = []
    for statement in body:
        waited = _waited(statement)
        if waited and waited & others and not waited & here:
            continue
        kept.append(statement)
    return kept


def _waited(statement: cst.BaseStatement) -> set[str]:
    """What a translated statement waits for if it does nothing else."""
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
