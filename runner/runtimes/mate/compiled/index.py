"""Functions rebuilt from their source, with every index marked.

numba lets negative indices of signed type count from the end of an array, as Python does. This code
prevents vectorisation (a factor of four in a stencil). So compiled functions use unsigned indices:
``a[e]`` becomes ``a[index(e)]`` unless ``e`` is a constant or a slice. A negative index then reads
outside of the array. The checked plain mode finds these: it runs the same marked functions in
Python, where ``index`` raises an error for a negative number.

Functions that keep Python's rules (``RegionSource.python``) and those of ``numba.njit`` stay as
written.
"""

from __future__ import annotations

import ast
import copy
import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from runner.runtimes.core.words import BUFFERING
from runner.runtimes.mate.compiled.names import resolve
from runner.runtimes.mate.compiled.source import RegionSource, dotted_name, read, relative_name
from runner.runtimes.mate.compiled.uses import check_calls

_INDEX, _COUNT_AS = "__index", "__count_as"


def with_index(
    source: RegionSource,
    index: Callable[..., Any],
    helpers: dict[RegionSource, Callable[..., Any]],
    count_as: Callable[..., Any] | None = None,
) -> types.FunctionType:
    """The function with ``index`` around its indices and with these helpers instead of its own.

    ``count_as(context, kind)`` replaces ``with context.buffering():`` if it is given. Its lines are
    those of the user's file. Constants have the values that they had when the source was resolved.
    """
    tree = copy.deepcopy(source.tree)
    tree.decorator_list, tree.returns, tree.args.defaults = [], None, []
    for argument in tree.args.args:
        argument.annotation = None
    if ast.get_docstring(tree) is not None:
        tree.body = tree.body[1:] or [ast.copy_location(ast.Pass(), tree)]
    tree = _Marker(source, count_as is not None).visit(tree)
    module = ast.fix_missing_locations(ast.Module([tree], []))
    space: dict[str, Any] = {_INDEX: index, _COUNT_AS: count_as}
    space["__name__"] = source.function.__module__
    for names in (source.constants, source.libraries):
        space |= {_plain(name): value for name, value in names.items()}
    space |= {_plain(name): helpers[helper] for name, helper in source.helpers.items()}
    exec(compile(module, source.file, "exec", dont_inherit=True), space)
    function = space[source.tree.name]
    assert isinstance(function, types.FunctionType)
    function.__defaults__ = source.function.__defaults__
    return function


def _plain(name: str) -> str:
    """``module.name`` as one name."""
    return name.replace(".", "__")


class _Marker(ast.NodeTransformer):
    def __init__(self, source: RegionSource, counting: bool) -> None:
        self._outside = source.constants.keys() | source.helpers.keys() | source.libraries.keys()
        self._plain = source.python or source.jit is not None
        self._counting, self._blocks = counting, 0

    def visit_With(self, node: ast.With) -> ast.stmt | list[ast.stmt]:
        self.generic_visit(node)
        call = node.items[0].context_expr
        if not self._counting or not isinstance(call, ast.Call):
            return node
        assert isinstance(call.func, ast.Attribute)
        before = f"__kind{self._blocks}"
        self._blocks += 1
        begin = ast.Assign(
            [ast.Name(before, ast.Store())], _count_call(call.func.value, ast.Constant(BUFFERING))
        )
        end = ast.Expr(_count_call(call.func.value, ast.Name(before, ast.Load())))
        for statement in (begin, end):
            for new in ast.walk(statement):
                ast.copy_location(new, call)
        return [begin, *node.body, end]

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if (name := dotted_name(node)) in self._outside:
            return ast.copy_location(ast.Name(_plain(name), ast.Load()), node)
        self.generic_visit(node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        index = node.slice
        if isinstance(index, ast.Tuple):
            index.elts = [self._mark(e) for e in index.elts]
        else:
            node.slice = self._mark(index)
        return node

    def _mark(self, index: ast.expr) -> ast.expr:
        if self._plain or isinstance(index, (ast.Slice, ast.Constant)):
            return index
        if isinstance(index, ast.UnaryOp) and isinstance(index.operand, ast.Constant):
            return index
        call = ast.Call(ast.Name(_INDEX, ast.Load()), [index], [])
        for node in (call, call.func):
            ast.copy_location(node, index)
        return call


def _count_call(context: ast.expr, kind: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(_COUNT_AS, ast.Load()), [copy.deepcopy(context), kind], [])


def with_index_check(body: Callable[..., Any], name: str) -> Callable[[Any, int], None]:
    """The region in plain Python, raising ``IndexError`` with its place for a negative index.

    The source is read at the first call, when all its names are known.
    """

    @functools.cache
    def load() -> Callable[..., Any]:
        source = read(body, name, region=True)
        resolve(source, {})
        check_calls(source)
        return _with_index_check(source, {})

    def region(state: Any, iteration: int) -> None:
        load()(state, iteration)

    return region


def _with_index_check(
    source: RegionSource, functions: dict[RegionSource, Callable[..., Any]]
) -> Callable[..., Any]:
    if source.jit is not None:
        functions[source] = source.function
        return source.function
    helpers = {
        h: functions.get(h) or _with_index_check(h, functions) for h in source.helpers.values()
    }
    functions[source] = with_index(source, _check_index, helpers)
    return functions[source]


def _check_index(index: Any) -> Any:
    if isinstance(index, (int, np.integer)) and index < 0:
        frame = sys._getframe(1)
        raise IndexError(
            f"{relative_name(frame.f_code.co_filename)}:{frame.f_lineno}: index {index} is "
            "negative: indices of compiled functions count from 0; only constants may be negative"
        )
    return index
