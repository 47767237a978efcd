"""Messages as statements: starting messages in a region that can be compiled.

``requests = [comm.Irecv(b, r) for b, r in ghosts]`` becomes a loop of ``irecv`` statements: the
graph waits for the messages of a region, so its requests need no names.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst
import libcst.matchers as m

from runner.runtimes.mate.translate.scopes import STARTS, VariableChanger, dotted_name, names_in

CONTEXT = "_mate"
"""The attribute of the state that starts messages."""
_IDENTITY = {"rank": "rank", "size": "size", "Get_rank": "rank", "Get_size": "size"}
_OWN = ("local_rank", "local_count", "process", "process_count")


class MessageStatements:
    """Rewrites the statements of a region; ``bound_names``: those of the enclosing function."""

    def __init__(
        self, state: str, api: str, communicators: set[str], bound_names: frozenset[str]
    ) -> None:
        self._state, self._api, self._communicators = state, api, communicators
        self._bound_names = bound_names

    def statements(self, statement: cst.BaseStatement) -> list[cst.BaseStatement]:
        """The statement, or its replacement."""
        block = cst.IndentedBlock([statement]).visit(_Rewriter(self))
        assert isinstance(block, cst.IndentedBlock)
        if m.matches(block.body[0], _PASS) and not m.matches(statement, _PASS):
            return []  # a list for requests
        return [s for s in block.body if isinstance(s, cst.BaseStatement)]

    def start_statements(self, node: cst.BaseExpression) -> list[cst.BaseStatement] | None:
        """The statements that start the messages of an expression; None if it starts none."""
        if (call := self._call(node)) is not None:
            return [cst.SimpleStatementLine([cst.Expr(call)])]
        if isinstance(node, cst.List | cst.Tuple):
            every = [self.start_statements(element.value) for element in node.elements]
            if not all(every):
                return [] if not every else None
            return [statement for statements in every for statement in statements or ()]
        if isinstance(node, cst.ListComp):
            node = self._with_new_names(node)
            inner = self.start_statements(node.elt)
            return inner and self._loop(node.for_in, inner)
        return None

    def _with_new_names(self, node: cst.ListComp) -> cst.ListComp:
        """The comprehension with variables unknown to the enclosing function."""
        targets: set[str] = set()
        loop: cst.CompFor | None = node.for_in
        while loop is not None:
            targets |= set(names_in([cst.AssignTarget(loop.target)]).bound)
            loop = loop.inner_for_in
        other = _Other(targets & self._bound_names)
        comprehension = node.visit(other)
        assert isinstance(comprehension, cst.ListComp)
        # The first list is evaluated outside of the comprehension.
        return comprehension.with_changes(
            for_in=comprehension.for_in.with_changes(iter=node.for_in.iter)
        )

    def _loop(
        self, head: cst.CompFor, inner: Sequence[cst.BaseStatement]
    ) -> list[cst.BaseStatement]:
        body = list(inner) if head.inner_for_in is None else self._loop(head.inner_for_in, inner)
        for test in reversed(head.ifs):
            body = [cst.If(test.test, cst.IndentedBlock(body))]
        return [cst.For(head.target, head.iter, cst.IndentedBlock(body))]

    def _call(self, node: cst.BaseExpression) -> cst.Call | None:
        """``state.context.isend(...)`` for ``comm.Isend(...)``."""
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
            return None
        if node.func.attr.value not in STARTS or not dotted_name(node.func.value):
            return None
        arguments = []
        for place, argument in enumerate(node.args):
            word = argument.keyword.value if argument.keyword is not None else ""
            if word == "buf":
                argument = argument.with_changes(keyword=cst.Name("buffer"))
            if not argument.star and (word == "buf" or (not word and place == 0)):
                argument = argument.with_changes(value=_array(argument.value))
            arguments.append(argument)
        return node.with_changes(func=self._member(node.func.attr.value.lower()), args=arguments)

    def _member(self, name: str) -> cst.Attribute:
        return cst.Attribute(
            cst.Attribute(cst.Name(self._state), cst.Name(CONTEXT)), cst.Name(name)
        )

    def identity(self, node: cst.BaseExpression) -> cst.Attribute | None:
        """``state.context.rank`` for ``comm.rank`` or ``comm.Get_rank()``, and similar names."""
        is_call = isinstance(node, cst.Call) and not node.args
        place = node.func if isinstance(node, cst.Call) else node
        if not isinstance(place, cst.Attribute):
            return None
        base, name = dotted_name(place.value), place.attr.value
        if base == self._api and name in _OWN and is_call:
            return self._member(name)
        world = base in self._communicators or base == f"{self._api}.COMM_WORLD"
        if world and name in _IDENTITY and is_call == name.startswith("Get_"):
            return self._member(_IDENTITY[name])
        return None


class _Other(VariableChanger):
    """Other names for the variables of a comprehension."""

    def __init__(self, names: set[str]) -> None:
        super().__init__()
        self._names = names

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        if original_node.value not in self._names:
            return updated_node
        return updated_node.with_changes(value=f"_mate_{original_node.value}")


class _Rewriter(cst.CSTTransformer):
    def __init__(self, messages: MessageStatements) -> None:
        super().__init__()
        self._messages = messages

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        return self._messages.identity(updated_node) or updated_node

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        return self._messages.identity(updated_node) or updated_node

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        statements: list[cst.BaseStatement] = []
        has_changes = False
        for small in updated_node.body:
            value = _value(small)
            starts = None if value is None else self._messages.start_statements(value)
            if starts is None:
                statements.append(cst.SimpleStatementLine([small.with_changes(semicolon=_NONE)]))
            else:
                statements += starts
                has_changes = True
        if not has_changes:
            return updated_node
        if statements:
            statements[0] = statements[0].with_changes(leading_lines=updated_node.leading_lines)
        else:
            statements = [cst.parse_statement("pass\n")]
        return cst.FlattenSentinel(statements)


_NONE = cst.MaybeSentinel.DEFAULT
_PASS = m.SimpleStatementLine([m.Pass()])
_APPEND = m.Call(m.Attribute(m.Name(), m.Name("append")), [m.Arg(keyword=None, star="")])


def _value(statement: cst.BaseSmallStatement) -> cst.BaseExpression | None:
    """The value that a statement binds to a name, or appends to the list of this name."""
    match statement:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name())]):
            return statement.value
        case cst.AnnAssign(target=cst.Name()):
            return statement.value
        case cst.AugAssign(target=cst.Name(), operator=cst.AddAssign()):
            return statement.value
        case cst.Expr(value=cst.Call() as call) if m.matches(call, _APPEND):
            return call.args[0].value
        case cst.Expr():
            return statement.value
    return None


def _array(buffer: cst.BaseExpression) -> cst.BaseExpression:
    """The array of mpi4py's ``[array, MPI.DOUBLE]``."""
    if not isinstance(buffer, cst.List | cst.Tuple) or len(buffer.elements) != 2:
        return buffer
    array, kind = (element.value for element in buffer.elements)
    return array if m.matches(kind, m.Attribute(m.Name("MPI"))) else buffer
