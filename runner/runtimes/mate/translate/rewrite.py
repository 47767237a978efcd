"""Writes the translated program: waiting functions become coroutines, annotated loops graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from runner.runtimes.mate.translate.checks import is_main
from runner.runtimes.mate.translate.compiled import (
    CompiledRegions,
    Enclosing,
    OrdinaryProgram,
    PythonRegion,
)
from runner.runtimes.mate.translate.find import WaitingFunctions, is_request, is_world
from runner.runtimes.mate.translate.graphs import (
    ASYNC,
    BLANK,
    GraphPart,
    function_name,
    functions,
    read_graph,
)
from runner.runtimes.mate.translate.module import ModuleNames
from runner.runtimes.mate.translate.pragmas import (
    Fail,
    GraphPragma,
    Statement,
    directive,
    without_directive,
)
from runner.runtimes.mate.translate.scopes import (
    ORDINARY,
    BoundNames,
    dotted_name,
    names_in,
    parameters,
)

MAIN = "_mate_main"
_WIDTH = 96


@dataclass(frozen=True)
class RegionForm:
    """The form of a region: machine code, or Python for this reason."""

    place: str
    """``file:line`` of the region, or of the code that cannot be compiled."""
    name: str
    reason: str
    """Empty if it can be compiled."""

    def __str__(self) -> str:
        if not self.reason:
            return f"{self.place}: region {self.name} is compiled"
        return f"{self.place}: region {self.name} stays Python: {self.reason}"


class Rewriter(cst.CSTTransformer):
    """Rewrites one module; ``graphs`` are the descriptions for the top of the module."""

    def __init__(
        self,
        module: cst.Module,
        waiting: WaitingFunctions,
        communicators: set[str],
        names: ModuleNames,
        fail: Fail,
    ) -> None:
        self.module = module
        self.waiting = waiting
        self.fail = fail
        self.graphs: list[cst.BaseStatement] = []
        self.regions: list[RegionForm] = []
        """The form of each region."""
        self._graph_count = 0
        self._functions: list[cst.FunctionDef] = []
        self._rebound = frozenset(
            item.name.value
            for node in m.findall(module, m.Nonlocal())
            for item in cst.ensure_type(node, cst.Nonlocal).names
        )
        api_name = _api_name(module)
        self.has_api = api_name is not None
        free = "mate" if not names_in([module]).mentions["mate"] else "_mate"
        self.api = api_name or free
        self._scopes: list[BoundNames] = []
        state = "_mate_state" if names_in([module]).mentions["state"] else "state"
        self._program = OrdinaryProgram(names, communicators, self.api, state, fail)

    # Names and calls

    def leave_ImportFrom(
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> cst.ImportFrom:
        """Import the runtime instead of ``from runner.runtimes.mate import ordinary as mate``."""
        aliases = []
        for alias in _aliases(updated_node):
            if _stands_for_runtime(original_node, alias):
                as_name = cst.AsName(cst.Name(alias.evaluated_alias or alias.evaluated_name))
                alias = alias.with_changes(name=cst.Name("translated"), asname=as_name)
            aliases.append(alias)
        return updated_node.with_changes(names=aliases) if aliases else updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if original_node not in self.waiting.calls:
            return updated_node
        function = updated_node.func
        if isinstance(function, cst.Attribute) and is_request(function.value):
            updated_node = updated_node.with_changes(func=_attribute(self.api, "waitall"))
        return cst.Await(updated_node, lpar=[cst.LeftParen()], rpar=[cst.RightParen()])

    def leave_Expr(self, original_node: cst.Expr, updated_node: cst.Expr) -> cst.Expr:
        return updated_node.with_changes(value=_bare(updated_node.value))

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        return updated_node.with_changes(value=_bare(updated_node.value))

    def leave_AugAssign(
        self, original_node: cst.AugAssign, updated_node: cst.AugAssign
    ) -> cst.AugAssign:
        return updated_node.with_changes(value=_bare(updated_node.value))

    def leave_AnnAssign(
        self, original_node: cst.AnnAssign, updated_node: cst.AnnAssign
    ) -> cst.AnnAssign:
        if updated_node.value is None:
            return updated_node
        return updated_node.with_changes(value=_bare(updated_node.value))

    def leave_Return(self, original_node: cst.Return, updated_node: cst.Return) -> cst.Return:
        if updated_node.value is None:
            return updated_node
        return updated_node.with_changes(value=_bare(updated_node.value))

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        if is_world(original_node):
            return _attribute(self.api, "COMM_WORLD")
        return updated_node

    # Functions

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        names = names_in([node.body])
        names.bound.update(parameters(node))
        self._scopes.append(names)
        self._functions.append(node)

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        self._scopes.pop()
        self._functions.pop()
        if original_node.name.value not in self.waiting.functions or original_node.asynchronous:
            return updated_node
        return updated_node.with_changes(asynchronous=ASYNC)

    # Graphs

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        statements: list[cst.BaseStatement] = []
        for old, new in zip(original_node.body, updated_node.body, strict=True):
            assert isinstance(old, cst.SimpleStatementLine | cst.BaseCompoundStatement)
            assert isinstance(new, cst.SimpleStatementLine | cst.BaseCompoundStatement)
            pragma, number = directive(old, self.fail)
            if isinstance(pragma, GraphPragma):
                statements += self._graph(old, new, number)
            else:
                statements.append(new)
        return updated_node.with_changes(body=statements)

    def _graph(self, old: Statement, new: Statement, number: int) -> list[cst.BaseStatement]:
        part = read_graph(new, self.fail)
        self._graph_count += 1
        name = f"_mate_graph_{self._graph_count}"
        scope = self._scopes[-1]
        machine_functions = self._compile(old, part)
        every = functions(part, scope)
        local = [
            function
            for function, machine in zip(every, machine_functions, strict=True)
            if machine is None
        ]
        place = self.fail(old, "").place.replace("\\", "/").rpartition("/")[2]
        rows = [
            _row(
                region.name,
                region.depends,
                str(function.waits) if machine is None else machine.name.value,
            )
            for region, function, machine in zip(
                part.regions, every, machine_functions, strict=True
            )
        ]
        self.graphs += [machine for machine in machine_functions if machine is not None]
        text = f'{name} = {self.api}.graph(\n    "{place}",\n    [\n{"".join(rows)}    ],\n)\n'
        graph: cst.BaseStatement = _led_by([BLANK], cst.parse_statement(text))
        if any(machine_functions):
            graph = graph.with_changes(leading_lines=[BLANK, BLANK])
        self.graphs.append(graph)
        # A name bound only by regions needs a binding in the function before they can share it.
        inside = names_in([s for region in part.regions for s in region.body])
        shared_names = {n for function in local for n in function.shared_names}
        fresh = sorted(n for n in shared_names if scope.bound[n] <= inside.bound[n])
        whole: list[cst.BaseStatement] = [
            *(cst.parse_statement(f"{fresh_name} = None\n") for fresh_name in fresh),
            *(function.function for function in local),
            self._run(name, part, [machine is not None for machine in machine_functions]),
        ]
        remarks = without_directive(new, number).leading_lines
        return [_led_by([*remarks, *part.remarks], whole[0]), *whole[1:]]

    def _compile(self, old: Statement, new: GraphPart) -> list[cst.FunctionDef | None]:
        """The functions of the regions that can be compiled; None for those that stay Python."""
        outer = frozenset(name for scope in self._scopes[:-1] for name in scope.bound)
        bound = frozenset(self._scopes[-1].bound)
        around = Enclosing(self._functions[-1], bound, outer, old, self._rebound)
        makes = CompiledRegions(read_graph(old, self.fail), new, around, self._program)
        machine_functions: list[cst.FunctionDef | None] = []
        for index, region in enumerate(new.regions):
            try:
                machine_functions.append(
                    makes.function(index, f"_mate_{self._graph_count}_{region.name}")
                )
                reason, place = "", self.fail(makes.place(index), "").place
            except PythonRegion as stays:
                machine_functions.append(None)
                reason, place = stays.reason, stays.place
            self.regions.append(RegionForm(place, region.name, reason))
        last = machine_functions[-1]
        if last is not None and new.footer:
            machine_functions[-1] = last.with_changes(
                body=last.body.with_changes(footer=new.footer)
            )
        return machine_functions

    def _run(self, name: str, part: GraphPart, is_compiled: list[bool]) -> cst.BaseStatement:
        count = cst.Integer("1") if part.iterations is None else part.iterations
        bodies = [
            function_name(region)
            for region, machine in zip(part.regions, is_compiled, strict=True)
            if not machine
        ]
        words = [name, self.module.code_for_node(count), *bodies]
        words += ["names=locals()"] * any(is_compiled)
        text = f"await {self.api}.run_graph({', '.join(words)})\n"
        if len(text) + 4 > _WIDTH:
            lines = "".join(f"    {word},\n" for word in words)
            text = f"await {self.api}.run_graph(\n{lines})\n"
        statement = cst.parse_statement(text)
        return _led_by([BLANK], statement)


def _row(name: str, depends: Sequence[str], body: str) -> str:
    """A region as a row of the graph's description."""
    words = ", ".join(f'"{word}"' for word in depends)
    return f'        ("{name}", [{words}], {body}),\n'


def _led_by(lines: Sequence[cst.EmptyLine], statement: cst.BaseStatement) -> cst.BaseStatement:
    """The statement with lines before it, without two blank lines in a row."""
    assert isinstance(statement, cst.SimpleStatementLine | cst.BaseCompoundStatement)
    own = list(statement.leading_lines)
    if lines and lines[-1].comment is None and own and own[0].comment is None:
        own = own[1:]
    return statement.with_changes(leading_lines=[*lines, *own])


def _aliases(node: cst.ImportFrom) -> Sequence[cst.ImportAlias]:
    return () if isinstance(node.names, cst.ImportStar) else node.names


def _stands_for_runtime(node: cst.ImportFrom, alias: cst.ImportAlias) -> bool:
    return (
        node.module is not None and f"{dotted_name(node.module)}.{alias.evaluated_name}" == ORDINARY
    )


def _attribute(base: str, name: str) -> cst.Attribute:
    return cst.Attribute(cst.Name(base), cst.Name(name))


def _bare(value: cst.BaseExpression) -> cst.BaseExpression:
    """The expression without parentheses that an awaited call needs only inside a larger one."""
    if isinstance(value, cst.Await) and len(value.lpar) == 1:
        return value.with_changes(lpar=[], rpar=[])
    return value


def _api_name(module: cst.Module) -> str | None:
    """The program's name for the module of the runtime, if the program imports it."""
    for statement in module.body:
        for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            if not isinstance(small, cst.ImportFrom):
                continue
            for alias in _aliases(small):
                if _stands_for_runtime(small, alias):
                    return alias.evaluated_alias or alias.evaluated_name
    return None


def with_main(module: cst.Module, rewriter: Rewriter, fail: Fail) -> cst.Module:
    """The module with the start of the runtime in its main block, and its graphs at the top.

    Raises TranslationError if there is no ``if __name__ == "__main__":`` block.
    """
    body: list[cst.BaseStatement] = []
    for statement in module.body:
        if is_main(statement):
            assert isinstance(statement, cst.If)
            if statement.orelse is not None:
                raise fail(statement, "the block that starts the program cannot have an else")
            body += _start_block(statement, rewriter.api)
        else:
            body.append(statement)
    if not any(is_main(statement) for statement in body):
        raise fail(
            rewriter.module, "there is no 'if __name__ == \"__main__\":' block to start from"
        )
    place = _after_imports(body)
    new_statements: list[cst.BaseStatement] = []
    if not rewriter.has_api:
        name = rewriter.api
        new_statements.append(
            cst.parse_statement(f"from runner.runtimes.mate import translated as {name}\n")
        )
    new_statements += rewriter.graphs
    return module.with_changes(body=[*body[:place], *new_statements, *body[place:]])


def _start_block(block: cst.If, api: str) -> list[cst.BaseStatement]:
    main = cst.FunctionDef(
        cst.Name(MAIN),
        cst.Parameters(),
        block.body,
        asynchronous=ASYNC,
        leading_lines=_two_blank(block.leading_lines),
    )
    start = cst.IndentedBlock([cst.parse_statement(f"{api}.start({MAIN})\n")])
    return [main, block.with_changes(body=start, leading_lines=[BLANK, BLANK])]


def _two_blank(lines: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    first = next((n for n, line in enumerate(lines) if line.comment is not None), len(lines))
    return [BLANK, BLANK, *lines[first:]]


def _after_imports(body: Sequence[cst.BaseStatement]) -> int:
    """The index after the last import and the module's docstring."""
    last = 0
    for number, statement in enumerate(body):
        small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
        is_text = isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString)
        if isinstance(small, cst.Import | cst.ImportFrom) or (is_text and number == 0):
            last = number + 1
    return last
