"""The names that a block of statements reads before binding them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

import libcst as cst


def parse(statements: Iterable[cst.BaseStatement]) -> list[ast.stmt]:
    """The statements as Python's own tree."""
    module = cst.Module(body=[])
    return ast.parse("".join(module.code_for_node(s) for s in statements)).body


def read_first(name: str, statements: Iterable[cst.BaseStatement]) -> bool:
    """True if the statements may read the value that a name had before them."""
    return Flow(name).run(parse(statements))


class Flow:
    """Follows one name through statements; ``bound``: they certainly have bound it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.bound = False

    def run(self, statements: Sequence[ast.stmt]) -> bool:
        """True if they may read an earlier value."""
        return any(self._statement(statement) for statement in statements)

    def _statement(self, node: ast.stmt) -> bool:
        match node:
            case ast.Assign(targets=targets, value=value):
                return self._assign(targets, value)
            case ast.AnnAssign(target=target, value=value):
                return value is not None and self._assign([target], value)
            case ast.AugAssign(target=target, value=value):
                return self._reads(value, ast.Expr(_as_load(target)))
            case ast.For() | ast.AsyncFor():
                if self._reads(node.iter):
                    return True
                before = self.bound
                if self._assign([node.target], None) or self.run(node.body):
                    return True
                self.bound = before
                return self.run(node.orelse)
            case ast.While():
                return self._reads(node.test) or self._branches(node.body, node.orelse, [])
            case ast.If():
                return self._reads(node.test) or self._branches(node.body, node.orelse)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    targets = [] if item.optional_vars is None else [item.optional_vars]
                    if self._assign(targets, item.context_expr):
                        return True
                return self.run(node.body)
            case ast.Import() | ast.ImportFrom():
                words = [a.asname or a.name.partition(".")[0] for a in node.names]
                self.bound |= self._name in words
                return False
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                reads = self._reads(*ast.iter_child_nodes(node))
                self.bound |= node.name == self._name
                return reads
        return self._reads(node)  # also all rare constructs: a name in them counts as read

    def _assign(self, targets: Sequence[ast.expr], value: ast.expr | None) -> bool:
        if value is not None and self._reads(value):
            return True
        names = {
            node.id
            for target in targets
            for node in ast.walk(target)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        if any(self._reads(target) for target in targets):
            return True
        self.bound |= self._name in names
        return False

    def _branches(self, *blocks: Sequence[ast.stmt]) -> bool:
        before, after = self.bound, True
        for block in blocks:
            self.bound = before
            if self.run(block):
                return True
            after &= self.bound
        self.bound = after
        return False

    def _reads(self, *nodes: ast.AST) -> bool:
        return not self.bound and any(map(self._mentions, nodes))

    def _mentions(self, node: ast.AST) -> bool:
        """True if the name is read there; a comprehension has its own variables."""
        match node:
            case ast.Name(id=name, ctx=context):
                return name == self._name and not isinstance(context, ast.Store)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                targets = [inner for loop in node.generators for inner in ast.walk(loop.target)]
                if any(isinstance(t, ast.Name) and t.id == self._name for t in targets):
                    return self._mentions(node.generators[0].iter)
        return any(map(self._mentions, ast.iter_child_nodes(node)))


def _as_load(target: ast.expr) -> ast.expr:
    """The target of ``+=``, which is also read."""
    return ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target
