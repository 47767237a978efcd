"""The meaning of the names in a compiled function: constants, functions, numpy and math.

Everything else from outside of a function is refused: compiled code sees the state and its own
variables.
"""

from __future__ import annotations

import ast
import builtins
import functools
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from runner.runtimes.mate.compiled import dialect
from runner.runtimes.mate.compiled.source import RegionSource, dotted_name, read

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
_JIT_OPTIONS = frozenset(
    {"boundscheck", "cache", "error_model", "fastmath", "inline", "nogil", "nopython", "parallel"}
)
_SCALARS = (bool, int, float, complex, np.bool_, np.integer, np.floating, np.complexfloating)


def resolve(source: RegionSource, sources: dict[Callable[..., Any], RegionSource]) -> None:
    """Resolve every name that the function does not bind itself.

    Functions that it calls are read, checked and resolved, too, and added to ``sources``. Raises
    :class:`GraphError` for code that cannot be compiled.
    """
    sources[source.function] = source
    dialect.check(source)
    resolver = _Resolver(source, sources)
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
    """True if compiled code may contain the value: a number or a tuple of such values."""
    if isinstance(value, tuple):
        return all(is_constant(v) for v in value)
    return isinstance(value, _SCALARS)


class _Resolver(ast.NodeVisitor):
    def __init__(
        self, source: RegionSource, sources: dict[Callable[..., Any], RegionSource]
    ) -> None:
        self._source, self._sources = source, sources
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
            value = functools.reduce(getattr, dotted_name(node).split(".")[1:], value)
        except AttributeError as error:
            raise self._source.refusal(node, str(error)) from None
        self._take(node, dotted_name(node), value)

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
        elif is_numba_function(value):
            self._source.helpers[name] = self._numba_function(node, name, value)
        elif _is_prange(value) and self._source.jit is not None:
            self._source.libraries[name] = value
        elif isinstance(value, types.FunctionType) and not _of_library(value):
            source = self._sources.get(value)
            if source is None:
                source = read(value, name)
                source.python = self._source.python
                resolve(source, self._sources)
            self._source.helpers[name] = source
        elif _of_library(value):
            self._check_library(node, getattr(value, "__name__", name))
            self._source.libraries[name] = value
        else:
            raise self._source.refusal(
                node,
                f"{name} is a {type(value).__name__} from outside of the function, which cannot be "
                f"compiled: {_instead(name, value)}",
            )

    def _numba_function(self, node: ast.expr, name: str, value: Any) -> RegionSource:
        """The function that ``numba.njit`` has decorated; its options stay in force."""
        source = self._sources.get(value.py_func)
        if source is None:
            options = {n: v for n, v in value.targetoptions.items() if v}
            other = options.keys() - _JIT_OPTIONS | (options.keys() & {"parallel"})
            if other or not options.get("nopython"):
                option_list = ", ".join(sorted(other)) or "forceobj"
                raise self._source.refusal(
                    node,
                    f"{name} is decorated with numba's option {option_list}, which compiled "
                    "regions do not have: leave it out",
                )
            if not value._can_compile:
                raise self._source.refusal(
                    node, f"{name} is decorated with types, as in njit('...'): leave them out"
                )
            source = read(value.py_func, name)
            option_names = ("boundscheck", "error_model", "fastmath")
            source.jit = {n: options[n] for n in option_names if n in options}
            resolve(source, self._sources)
        return source

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


def is_numba_function(value: Any) -> bool:
    """True if ``numba.njit`` or ``numba.jit`` has decorated it."""
    return hasattr(value, "py_func") and hasattr(value, "targetoptions")


def _is_prange(value: Any) -> bool:
    """True if this is ``numba.prange``, which is ``range`` without parallel code."""
    return (
        getattr(value, "__name__", "") == "prange"
        and (getattr(value, "__module__", None) or "").partition(".")[0] == "numba"
    )


def _of_library(value: Any) -> bool:
    """True if this is numpy or math, or one of their functions or number types."""
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
        return (
            "expected a plain function (def), without a decorator other than "
            "numba's njit; it is compiled by itself"
        )
    if isinstance(value, types.ModuleType):
        return f"use {name}.FUNCTION or {name}.NUMBER"
    return "put what the function needs of it into the state, as numbers and arrays"
