"""Checks of a program for forbidden constructs, before anything is changed."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m
from libcst.metadata import Assignment, GlobalScope, MetadataWrapper, ScopeProvider

from runner.runtimes.mate.translate.find import is_world
from runner.runtimes.mate.translate.graphs import check_graph, check_variable
from runner.runtimes.mate.translate.pragmas import Fail, GraphPragma, directive, pragma_of
from runner.runtimes.mate.translate.scopes import MPI, NOT_IN_MPI, ORDINARY, dotted_name

MAIN_TEST = m.Comparison(
    m.Name("__name__"),
    [m.ComparisonTarget(m.Equal(), m.SimpleString("'__main__'") | m.SimpleString('"__main__"'))],
)

_IMPORTS = {
    MPI: "from mpi4py import MPI",
    ORDINARY: "from runner.runtimes.mate import ordinary as mate",
}


def is_main(statement: cst.BaseStatement) -> bool:
    """True if the statement is ``if __name__ == "__main__":``."""
    return isinstance(statement, cst.If) and m.matches(statement.test, MAIN_TEST)


def check_directives(module: cst.Module, fail: Fail) -> None:
    """Check that directives precede statements, and that regions are in graphs in functions."""
    directives = _Directives(fail)
    module.visit(directives)
    module.visit(_Comments(directives.read, fail))


class _Directives(cst.CSTVisitor):
    def __init__(self, fail: Fail) -> None:
        self.fail = fail
        self.read: set[cst.Comment] = set()
        self._functions: list[cst.FunctionDef] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.FunctionDef):
            self._functions.append(node)
        if not isinstance(node, cst.SimpleStatementLine | cst.BaseCompoundStatement):
            return True
        pragma, number = directive(node, self.fail)
        if pragma is None:
            return True
        self._note(node, number)
        if not isinstance(pragma, GraphPragma):
            raise self.fail(node, "a region outside a graph")
        check_graph(node, self.fail)
        if not self._functions:
            raise self.fail(node, "a graph outside a function: move it into one")
        check_variable(self._functions[-1], node, self.fail)
        assert isinstance(node, cst.For | cst.If)
        for statement in node.body.body:
            assert isinstance(statement, cst.SimpleStatementLine | cst.BaseCompoundStatement)
            _, number = directive(statement, self.fail)
            self._note(statement, number)
        return False

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, cst.FunctionDef):
            self._functions.pop()

    def _note(self, node: cst.SimpleStatementLine | cst.BaseCompoundStatement, line: int) -> None:
        comment = node.leading_lines[line].comment if line >= 0 else None
        if comment is not None:
            self.read.add(comment)


class _Comments(cst.CSTVisitor):
    def __init__(self, directives: set[cst.Comment], fail: Fail) -> None:
        self.directives, self.fail = directives, fail

    def visit_Comment(self, node: cst.Comment) -> None:
        if node not in self.directives and pragma_of(node, self.fail) is not None:
            raise self.fail(node, "a directive must be a line of its own before a statement")


def check_imports(module: cst.Module, fail: Fail) -> None:
    """Check that ``MPI`` and the module for the runtime are imported in the usual way.

    The translator recognises names by their spelling.
    """
    module.visit(_Imports(fail))


class _Imports(cst.CSTVisitor):
    def __init__(self, fail: Fail) -> None:
        self.fail = fail

    def visit_Import(self, node: cst.Import) -> None:
        for alias in node.names:
            self._refuse(node, alias.evaluated_name)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        origin = "" if node.module is None else dotted_name(node.module)
        self._refuse(node, origin)
        for alias in () if isinstance(node.names, cst.ImportStar) else node.names:
            name = f"{origin}.{alias.evaluated_name}"
            if name == MPI and alias.evaluated_alias not in (None, "MPI"):
                self._refuse(node, name)

    def _refuse(self, node: cst.CSTNode, name: str) -> None:
        if name in _IMPORTS:
            raise self.fail(
                node, f"write '{_IMPORTS[name]}': the translation recognises calls by these names"
            )

    def visit_Attribute(self, node: cst.Attribute) -> None:
        if m.matches(node, m.Attribute(m.Name("mpi4py"), m.Name("MPI"))):
            self._refuse(node, MPI)
        if m.matches(node.value, m.Name("MPI")) and node.attr.value in NOT_IN_MPI:
            why = NOT_IN_MPI[node.attr.value]
            raise self.fail(node, f"MPI.{node.attr.value} {why}")


def check_module(
    module: cst.Module, calls: frozenset[cst.Call], communicators: set[str], fail: Fail
) -> None:
    """Check that the module waits for nothing and needs no rank: a process imports it once."""
    for statement in module.body:
        if not is_main(statement):
            statement.visit(_AtImport(calls, communicators, fail))


class _AtImport(cst.CSTVisitor):
    def __init__(self, calls: frozenset[cst.Call], communicators: set[str], fail: Fail) -> None:
        self.calls, self.communicators, self.fail = calls, communicators, fail

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        return False

    def visit_Attribute(self, node: cst.Attribute) -> None:
        if node.attr.value in ("rank", "size", "Get_rank", "Get_size"):
            base = node.value
            is_communicator = isinstance(base, cst.Name) and base.value in self.communicators
            if is_communicator or is_world(base):
                raise self._wrong(node)

    def visit_Call(self, node: cst.Call) -> None:
        if node in self.calls:
            raise self._wrong(node)

    def _wrong(self, node: cst.CSTNode) -> Exception:
        return self.fail(
            node,
            "this runs once for all ranks of a process, where the file is loaded; start the "
            'program under if __name__ == "__main__":, or move this into a function',
        )


def check_main(wrapper: MetadataWrapper, fail: Fail) -> None:
    """Check the main block: its names belong to one rank, so functions cannot read them."""
    for block in wrapper.module.body:
        if not is_main(block):
            continue
        bound = _Inside()
        block.visit(bound)
        scopes = {s for s in wrapper.resolve(ScopeProvider).values() if isinstance(s, GlobalScope)}
        for assignment in (a for scope in scopes for a in scope.assignments):
            if not isinstance(assignment, Assignment) or assignment.node not in bound.nodes:
                continue
            for access in assignment.references:
                if access.node not in bound.nodes:
                    raise fail(
                        access.node,
                        f"{assignment.name} is bound in the block that starts the program, which "
                        "every rank runs: hand it over as an argument",
                    )


class _Inside(cst.CSTVisitor):
    def __init__(self) -> None:
        self.nodes: set[cst.CSTNode] = set()

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.nodes.add(node)
        return True
