"""Names in parts of a function: bound, mentioned, and special ones.

Special names have a fixed role: calls that may wait, and calls that the runtime lacks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst


@dataclass(frozen=True)
class BoundNames:
    """How often each name is bound and mentioned (a binding is a mention too)."""

    bound: Counter[str]
    mentions: Counter[str]


def names_in(nodes: Sequence[cst.CSTNode]) -> BoundNames:
    visitor = _Names()
    for node in nodes:
        node.visit(visitor)
    return BoundNames(visitor.bound, visitor.mentions)


class VariableChanger(cst.CSTTransformer):
    """Changes variables (``leave_Name``), not names of attributes and of keyword arguments."""

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)


def parameters(node: cst.FunctionDef) -> list[str]:
    """Names of all parameters of a function."""
    signature = node.params
    stars = [p for p in (signature.star_arg, signature.star_kwarg) if isinstance(p, cst.Param)]
    every = (*signature.posonly_params, *signature.params, *signature.kwonly_params, *stars)
    return [parameter.name.value for parameter in every]


def persistent(name: str, body: Sequence[cst.BaseStatement]) -> bool:
    """True if statements that bind a name may read its earlier value."""
    with_it = [s for s in body if names_in([s]).mentions[name]]
    first = with_it[0]
    if isinstance(first, cst.SimpleStatementLine):
        small = next(s for s in first.body if names_in([s]).mentions[name])
        if isinstance(small, cst.Import | cst.ImportFrom):
            return False
        if not isinstance(small, cst.Assign | cst.AnnAssign) or small.value is None:
            return True
        return not names_in([small]).bound[name] or bool(names_in([small.value]).mentions[name])
    if isinstance(first, cst.For):
        target = names_in([cst.AssignTarget(first.target)]).bound[name]
        before = names_in([first.iter]).mentions[name]
        return not target or bool(before) or len(with_it) > 1 or first.orelse is not None
    if isinstance(first, cst.With):
        with_names = names_in(first.items)
        return not with_names.bound[name] or with_names.mentions[name] > 1
    return not isinstance(first, cst.FunctionDef | cst.ClassDef)


class _Names(cst.CSTVisitor):
    """Counts how often names are bound and mentioned; inner functions have their own names."""

    def __init__(self) -> None:
        self.bound: Counter[str] = Counter()
        self.mentions: Counter[str] = Counter()
        self._inner = 0

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._definition(node.name.value)

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._inner -= 1

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._definition(node.name.value)

    def leave_ClassDef(self, original_node: cst.ClassDef) -> None:
        self._inner -= 1

    def _definition(self, name: str) -> None:
        if not self._inner:
            self.bound[name] += 1
        self._inner += 1

    def visit_Lambda(self, node: cst.Lambda) -> None:
        self._inner += 1

    def leave_Lambda(self, original_node: cst.Lambda) -> None:
        self._inner -= 1

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        node.value.visit(self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False

    def visit_Name(self, node: cst.Name) -> None:
        self.mentions[node.value] += 1

    def visit_ImportAlias(self, node: cst.ImportAlias) -> bool:
        name = node.evaluated_alias or node.evaluated_name.partition(".")[0]
        self.mentions[name] += 1
        self._bind(name)
        return False

    def visit_NameItem(self, node: cst.NameItem) -> None:
        self._bind(node.name.value)  # nonlocal: it is bound already

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self._target(node.target)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._target(node.target)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._target(node.target)

    def visit_For(self, node: cst.For) -> None:
        self._target(node.target)

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self._target(node.target)

    def visit_AsName(self, node: cst.AsName) -> None:
        self._target(node.name)

    def visit_Del(self, node: cst.Del) -> None:
        self._target(node.target)

    def visit_MatchAs(self, node: cst.MatchAs) -> None:
        if node.name is not None:
            self._target(node.name)

    def visit_MatchStar(self, node: cst.MatchStar) -> None:
        if node.name is not None:
            self._target(node.name)

    def _target(self, target: cst.BaseExpression) -> None:
        if isinstance(target, cst.Name):
            self._bind(target.value)
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._target(element.value)

    def _bind(self, name: str) -> None:
        if not self._inner:
            self.bound[name] += 1


def targets(body: Sequence[cst.BaseStatement]) -> set[str]:
    """The targets that statements bind, including attributes (``self.requests``)."""
    visitor = _Targets()
    for statement in body:
        statement.visit(visitor)
    return visitor.names | set(names_in(body).bound)


def chains(node: cst.BaseExpression) -> set[str]:
    """Names and dotted names in an expression; the longest form of each."""
    visitor = _Chains()
    node.visit(visitor)
    return visitor.names


def dotted_name(node: cst.BaseExpression) -> str:
    """``a.b.c`` as a string; "" if the expression is more than names."""
    if isinstance(node, cst.Attribute):
        base = dotted_name(node.value)
        return base and f"{base}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""


class _Targets(cst.CSTVisitor):
    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        if isinstance(node.target, cst.Attribute):
            self.names.add(dotted_name(node.target))


class _Chains(cst.CSTVisitor):
    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        name = dotted_name(node)
        if name:
            self.names.add(name)
        return not name

    def visit_Name(self, node: cst.Name) -> None:
        self.names.add(node.value)


STARTS = frozenset({"Isend", "Irecv"})
"""Methods that start a message."""

BLOCKING = frozenset(
    {
        *("Send", "Recv", "Barrier", "Bcast", "Reduce", "Allreduce", "Gather", "Scatter"),
        *("Allgather", "Allgatherv", "Wait", "Waitall", "local_bcast", "local_barrier"),
    }
)
"""Methods that may have to wait; they are awaited (Martin 2018, appendix E)."""

WAITS = frozenset({"Wait", "Waitall"})
"""Waits that are removed from a region: the graph waits for messages (Martin 2018, 3.4)."""

UNSUPPORTED_NAMES = frozenset(
    {
        *("Ssend", "Bsend", "Rsend", "Issend", "Ibsend", "Irsend", "Sendrecv", "Isendrecv"),
        *("Sendrecv_replace", "Probe", "Iprobe", "Mprobe", "Improbe", "Test", "Testall"),
        *("Testany", "Testsome", "Waitany", "Waitsome", "Cancel", "Send_init", "Recv_init"),
        *("Start", "Startall", "Alltoall", "Alltoallv", "Alltoallw", "Gatherv", "Scatterv"),
        *("Reduce_scatter", "Reduce_scatter_block", "Scan", "Exscan", "Ibarrier", "Ibcast"),
        *("Ireduce", "Iallreduce", "Igather", "Iscatter", "Iallgather", "Iallgatherv"),
        *("Ialltoall", "Dup", "Split", "Split_type", "Create", "Create_cart", "Create_graph"),
        *("Create_dist_graph", "Create_group", "Spawn", "Connect", "Accept", "Disconnect"),
    }
)
"""Methods of communicators and requests that the runtime lacks (Martin 2018, appendix E)."""

OBJECTS = frozenset(
    {
        *("send", "recv", "isend", "irecv", "ssend", "bsend", "sendrecv", "bcast", "reduce"),
        *("allreduce", "gather", "scatter", "allgather", "alltoall", "scan", "exscan", "barrier"),
        *("probe", "iprobe"),
    }
)
"""Methods for pickled objects; refused if the object is certainly a communicator."""

_NO_SUPPORT = "is not supported by the runtime"
_INSTEAD = {
    "Sendrecv": "Irecv, Send and Wait",
    "Sendrecv_replace": "Irecv into another buffer, Send and Wait",
    **dict.fromkeys(("Ssend", "Bsend", "Rsend"), "Send"),
    **dict.fromkeys(("Issend", "Ibsend", "Irsend"), "Isend"),
    **dict.fromkeys(("Test", "Waitany", "Waitsome", "Testany", "Testsome", "Testall"), "Waitall"),
    **dict.fromkeys(("Alltoall", "Alltoallv", "Alltoallw"), "Isend, Irecv and Waitall"),
    **dict.fromkeys(("Gatherv", "Scatterv"), "Isend, Irecv and Waitall"),
    **dict.fromkeys(("Reduce_scatter", "Reduce_scatter_block"), "Allreduce"),
    **{f"I{name.lower()}": name for name in ("Barrier", "Bcast", "Reduce", "Allreduce")},
    **{f"I{name.lower()}": name for name in ("Gather", "Scatter", "Allgather", "Allgatherv")},
}


def unsupported_words(name: str) -> str:
    """A message that the runtime lacks this method, with its replacement."""
    methods = sorted(n for n in STARTS | BLOCKING if not n.startswith("local_"))
    advice = f"use {_INSTEAD[name]}" if name in _INSTEAD else f"it has {', '.join(methods)}"
    return f"{name} {_NO_SUPPORT}; {advice}"


NOT_IN_MPI = {
    **dict.fromkeys(("ANY_SOURCE", "ANY_TAG", "PROC_NULL", "IN_PLACE"), _NO_SUPPORT),
    "COMM_SELF": _NO_SUPPORT,
    **dict.fromkeys(("Init", "Init_thread", "Finalize"), "is done by the runtime; remove it"),
}
"""Attributes of the module ``MPI`` that a program may not use, and why."""

MPI = "mpi4py.MPI"

ORDINARY = "runner.runtimes.mate.ordinary"
"""The module that replaces the runtime in an ordinary program."""

CONTAINER_METHODS = frozenset(dir(dict)) | frozenset(dir(list)) | frozenset(dir(set))
"""Methods of containers; a program's own method of this name is indistinguishable."""
