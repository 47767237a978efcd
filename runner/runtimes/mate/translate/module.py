"""The names of a program's module, as far as its text defines them.

The program is not run: only its function definitions are evaluated, without their decorators.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import importlib
import linecache
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from runner.runtimes.mate.compiled.source import dotted_name

_MODULES = ("math", "numpy")
_UNKNOWN = 0
"""A placeholder for values known only at run time: compiled code uses a number as it is."""


@dataclass(frozen=True)
class _NumbaFunction:
    """A function decorated by ``numba.njit``, as far as the checks need it."""

    py_func: types.FunctionType
    targetoptions: dict[str, Any]
    _can_compile: bool


class ModuleNames:
    """The global names of a program; ``text`` is valid Python."""

    def __init__(self, text: str, file: str) -> None:
        self.file = f"<{file}>"
        self._lines = text.splitlines(keepends=True)
        self._names: dict[str, Any] = {"__name__": "translated"}
        tree = ast.parse(text)
        bound: set[str] = set()
        for statement in tree.body:
            for name in _bound(statement):
                # Names bound twice are known only to the running program.
                self._names[name] = _UNKNOWN if name in bound else self._meaning(statement, name)
                bound.add(name)
        every = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        if any(alias.name == "*" for node in every for alias in node.names):
            for name in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}:
                if not hasattr(builtins, name):
                    self._names.setdefault(name, _UNKNOWN)

    def function(self, tree: ast.FunctionDef) -> types.FunctionType:
        """The function of a definition without decorators, with the module's names."""
        module = ast.fix_missing_locations(ast.Module([tree], []))
        space: dict[str, Any] = {}
        exec(compile(module, self.file, "exec", dont_inherit=True), self._names, space)
        value = space[tree.name]
        assert isinstance(value, types.FunctionType)
        return value

    @contextlib.contextmanager
    def readable(self) -> Iterator[None]:
        """Make the sources of the functions readable within this context."""
        size = sum(map(len, self._lines))
        linecache.cache[self.file] = (size, None, self._lines, self.file)
        try:
            yield
        finally:
            linecache.cache.pop(self.file, None)

    def _meaning(self, statement: ast.stmt, name: str) -> Any:
        match statement:
            case ast.Import(names=names):
                for alias in names:
                    whole = alias.name if alias.asname else alias.name.partition(".")[0]
                    if (alias.asname or whole) == name and whole in _MODULES:
                        return importlib.import_module(whole)
            case ast.ImportFrom(module=module, names=names, level=0) if module in _MODULES:
                for alias in names:
                    if (alias.asname or alias.name) == name:
                        return getattr(importlib.import_module(module), alias.name, _UNKNOWN)
            case ast.FunctionDef():
                return self._definition(statement)
            case ast.ClassDef():
                return type(name, (), {})
            case ast.Assign(targets=[ast.Name()], value=value) | ast.AnnAssign(value=value):
                with contextlib.suppress(ValueError, TypeError, RecursionError):
                    return ast.literal_eval(value) if value is not None else _UNKNOWN
        return _UNKNOWN

    def _definition(self, node: ast.FunctionDef) -> Any:
        plain = _without_decorators(node)
        try:
            function = self.function(plain)
        except (SyntaxError, ValueError, RecursionError):
            return _UNKNOWN
        if not node.decorator_list:
            return function
        decorator = node.decorator_list[0]
        call = decorator if isinstance(decorator, ast.Call) else None
        name = dotted_name(decorator if call is None else call.func).rpartition(".")[2]
        if len(node.decorator_list) > 1 or name not in ("jit", "njit"):
            return _UNKNOWN
        options: dict[str, Any] = {"nopython": True}
        for keyword in () if call is None else call.keywords:
            if isinstance(keyword.value, ast.Constant):
                options[keyword.arg or ""] = keyword.value.value
        return _NumbaFunction(function, options, call is None or not call.args)


def _without_decorators(node: ast.FunctionDef) -> ast.FunctionDef:
    """The definition, which runs no code of the program: defaults are numbers."""
    plain = copy.deepcopy(node)
    plain.decorator_list, plain.returns = [], None
    arguments = plain.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for argument in (*every, arguments.vararg, arguments.kwarg):
        if argument is not None:
            argument.annotation = None
    arguments.defaults = [_number(default) for default in arguments.defaults]
    arguments.kw_defaults = [d and _number(d) for d in arguments.kw_defaults]
    if node.decorator_list:
        # The source of a function starts with its first decorator.
        plain.lineno = min(decorator.lineno for decorator in node.decorator_list)
    return plain


def _number(node: ast.expr) -> ast.expr:
    return node if isinstance(node, ast.Constant) else ast.copy_location(ast.Constant(0), node)


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement of the module binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    names = set()
    for node in ast.walk(statement):
        match node:
            case ast.Name(ctx=ast.Store()):
                names.add(node.id)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.alias():
                names.add(node.asname or node.name.partition(".")[0])
    return names
