"""The source of regions and of the functions that they call: text, tree, and what its names mean.

A function is read once, from its file. Its tree keeps the lines of the file, so that every message
names the user's line.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
import math
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from runner.mate.errors import GraphError

BUILTINS = frozenset(
    {"abs", "bool", "complex", "divmod", "enumerate", "float", "int", "len", "max", "min", "pow"}
    | {"range", "round", "zip"}
)
"""Built-in functions that a compiled function may call."""

_NEW_ARRAYS = frozenset(
    {"append", "arange", "array", "asarray", "ascontiguousarray", "concatenate", "convolve", "copy"}
    | {"cumsum", "diff", "empty", "empty_like", "eye", "flip", "full", "full_like", "hstack"}
    | {"identity", "linspace", "meshgrid", "ones", "ones_like", "outer", "pad", "repeat", "roll"}
    | {"sort", "stack", "take", "tile", "vstack", "where", "zeros", "zeros_like"}
)
_LIBRARY_CALLS = frozenset({"dot", "einsum", "fft", "inner", "linalg", "matmul", "random", "vdot"})
_NUMPY_PACKAGES = ("numpy", "math")
_SCALARS = (bool, int, float, complex, np.bool_, np.integer, np.floating, np.complexfloating)


@dataclass(eq=False)
class Source:
    """A Python function that is to be compiled, with its text and the meaning of its names."""

    function: types.FunctionType
    title: str
    """``region compute`` or ``function flux``, for messages."""
    file: str
    text: str
    tree: ast.FunctionDef
    """The definition, with the lines of the file; nobody changes it."""
    constants: dict[str, Any] = field(default_factory=dict)
    """Name -> number, or tuple of numbers, from a closure or a module (``module.NAME`` too)."""
    helpers: dict[str, Source] = field(default_factory=dict)
    """Name -> Python function that is compiled with this one (``module.name`` too)."""
    libraries: dict[str, Any] = field(default_factory=dict)
    """Name -> ``numpy``, ``math``, or a function of them."""

    @property
    def parameters(self) -> list[str]:
        return [a.arg for a in self.tree.args.args]

    def helper(self, node: ast.expr) -> Source | None:
        """The function that a call's ``func`` names, if it is compiled too."""
        return self.helpers.get(dotted(node))

    def refusal(self, node: ast.AST | None, what: str) -> GraphError:
        """The error for this place; ``what`` says what is not possible and what to do."""
        return self.refusal_at(getattr(node, "lineno", None) or self.tree.lineno, what)

    def refusal_at(self, line: int, what: str) -> GraphError:
        """The error for this line of the file."""
        return GraphError(f"{shown(self.file)}:{line}: {self.title}: {what}")


def shown(file: str) -> str:
    """A file's name in messages: relative if it is in or below the current directory."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file


def dotted(node: ast.expr) -> str:
    """``a``, ``a.b`` or ``a.b.c`` for names and their attributes; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


def read(function: Any, title: str) -> Source:
    """The function with its tree; names are not resolved yet (:func:`resolve`).

    ``title`` names it in messages. Raises :class:`GraphError` for what is no
    plain function with a source file.
    """
    if not isinstance(function, types.FunctionType):
        raise GraphError(
            f"{title} is a {type(function).__name__}, which cannot be compiled: expected a plain "
            "function (def), without decorators below it"
        )
    code = function.__code__
    if code.co_name == "<lambda>":
        raise GraphError(
            f"{shown(code.co_filename)}:{code.co_firstlineno}: {title} is a lambda, which cannot "
            "be compiled: write it as a function (def)"
        )
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        raise GraphError(
            f"{title} has no source ({code.co_filename}), and compiled functions are made from "
            "it: put the function into a file"
        )
    text = "".join(inspect.getblock(lines[code.co_firstlineno - 1 :]))
    tree = _definition(text, code)
    if tree is None:
        raise GraphError(
            f"{shown(code.co_filename)}:{code.co_firstlineno}: {title} is not found there: has "
            "the file changed since the program was started? Start it again"
        )
    return Source(function, title, code.co_filename, text, tree)


def _definition(text: str, code: types.CodeType) -> ast.FunctionDef | None:
    """The definition that starts at the first line of ``text``, with the lines of the file."""
    indented = text[:1] in " \t"
    try:
        body = ast.parse(f"if 1:\n{text}" if indented else text).body
    except SyntaxError:
        return None
    if indented and isinstance(body[0], ast.If):
        body = body[0].body
    found = body[0] if body else None
    if not isinstance(found, ast.FunctionDef) or found.name != code.co_name:
        return None
    ast.increment_lineno(found, code.co_firstlineno - (2 if indented else 1))
    return found


def resolve(source: Source, known: dict[types.FunctionType, Source]) -> None:
    """Find out what every name means that the function does not bind itself.

    Functions that it calls are read and resolved too, and added to ``known``. Raises
    :class:`GraphError` for a name whose value cannot be compiled.
    """
    known[source.function] = source
    resolver = _Resolver(source, known)
    for statement in source.tree.body:
        resolver.visit(statement)
    for name, value in zip(
        reversed(source.parameters), reversed(source.function.__defaults__ or ()), strict=False
    ):
        if not is_constant(value):
            raise source.refusal(
                source.tree, f"the default of {name} is a {type(value).__name__}: expected a number"
            )


def is_constant(value: Any) -> bool:
    """Whether the value may stand in compiled code: a number or a tuple of such values."""
    if isinstance(value, tuple):
        return all(is_constant(v) for v in value)
    return isinstance(value, _SCALARS)


class _Resolver(ast.NodeVisitor):
    def __init__(self, source: Source, known: dict[types.FunctionType, Source]) -> None:
        self._source, self._known = source, known
        code, function = source.function.__code__, source.function
        self._local = {*code.co_varnames, *code.co_cellvars}
        self._free = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))

    def visit_Name(self, node: ast.Name) -> None:
        if node.id not in self._local:
            self._take(node, node.id, self._value(node))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        base = node
        while isinstance(base.value, ast.Attribute):
            base = base.value
        if not isinstance(base.value, ast.Name) or base.value.id in self._local:
            self.generic_visit(node)
            return
        value, name = self._value(base.value), base.value.id
        if not isinstance(value, types.ModuleType):
            self.generic_visit(node)
            return
        if value.__name__ in _NUMPY_PACKAGES:
            self._check_library(node, base.attr)
            self._source.libraries[name] = value
            return
        try:
            value = functools.reduce(getattr, dotted(node).split(".")[1:], value)
        except AttributeError as error:
            raise self._source.refusal(node, str(error)) from None
        self._take(node, dotted(node), value)

    def _value(self, node: ast.Name) -> Any:
        name = node.id
        if name in self._free:
            try:
                return self._free[name].cell_contents
            except ValueError:
                raise self._source.refusal(node, f"{name} has no value yet") from None
        if name in (space := self._source.function.__globals__):
            return space[name]
        if hasattr(builtins, name):
            if name in BUILTINS:
                return getattr(builtins, name)
            instead = "remove it, or use --core python" if name == "print" else "write it out"
            raise self._source.refusal(node, f"{name} cannot be compiled: {instead}")
        raise self._source.refusal(node, f"{name} is not defined")

    def _take(self, node: ast.expr, name: str, value: Any) -> None:
        if name in BUILTINS and value is getattr(builtins, name):
            return
        if is_constant(value):
            self._source.constants[name] = value
        elif isinstance(value, types.FunctionType) and not _of_library(value):
            found = self._known.get(value)
            if found is None:
                found = read(value, f"function {name}")
                resolve(found, self._known)
            self._source.helpers[name] = found
        elif _of_library(value):
            self._check_library(node, getattr(value, "__name__", name))
            self._source.libraries[name] = value
        else:
            raise self._source.refusal(
                node,
                f"{name} is a {type(value).__name__} from outside of the function, which cannot be "
                f"compiled: {_instead(name, value)}",
            )

    def _check_library(self, node: ast.expr, name: str) -> None:
        if name in _NEW_ARRAYS:
            raise self._source.refusal(
                node,
                f"np.{name} makes a new array, which compiled code cannot: make the array when the "
                "state is made, and write a loop over its elements",
            )
        if name in _LIBRARY_CALLS:
            raise self._source.refusal(
                node, f"np.{name} calls a library, which compiled code cannot: write loops"
            )


def _of_library(value: Any) -> bool:
    """Whether it is numpy or math, or a function or number type of them."""
    if value is np or value is math:
        return True
    if isinstance(value, np.ufunc):
        return True
    module = getattr(value, "__module__", None) or ""
    return callable(value) and module.partition(".")[0] in _NUMPY_PACKAGES


def _instead(name: str, value: Any) -> str:
    if isinstance(value, (np.ndarray, list)):
        return f"put it into the state (part.{name} = {name})"
    if callable(value) and not isinstance(value, type):
        return "expected a plain function (def), without a decorator; it is compiled by itself"
    if isinstance(value, types.ModuleType):
        return f"use {name}.FUNCTION or {name}.NUMBER"
    return "put what the function needs of it into the state, as numbers and arrays"
