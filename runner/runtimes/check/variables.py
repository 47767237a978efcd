"""Variables of a function's surroundings: the arrays and objects that it uses without its state.

While a region runs, the variables of enclosing functions and of its module hold watched values.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from runner.runtimes.check.watch import Watch, unwatched

_SIMPLE = (int, float, bool, str, bytes, complex, type(None), type, types.ModuleType)


@dataclass
class Variables:
    """Cells of enclosing functions, and names of modules, that a function can reach."""

    cells: dict[int, tuple[types.CellType, str]] = field(default_factory=dict)
    names: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)
    stored: list[tuple[types.CellType, str, bool, bool]] = field(default_factory=list)
    """Cells of the function itself, each with its name, and whether it is read first, and bound."""


@functools.lru_cache(maxsize=4096)
def reachable(function: types.FunctionType) -> Variables:
    """The variables of a function and of the functions that it calls by name."""
    result = Variables()
    _collect(function, result, set())
    loads: dict[str, bool] = {}
    stores: set[str] = set()
    for step in dis.get_instructions(function):
        if step.opname in ("LOAD_DEREF", "LOAD_CLASSDEREF"):
            loads.setdefault(str(step.argval), step.argval not in stores)
        elif step.opname == "STORE_DEREF":
            stores.add(str(step.argval))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        result.stored.append((cell, name, loads.get(name, False), name in stores))
    return result


def _collect(function: types.FunctionType, result: Variables, visited: set[Any]) -> None:
    if function in visited or _is_library(function.__module__):
        return
    visited.add(function)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        result.cells[id(cell)] = cell, name
        with contextlib.suppress(ValueError):
            _visit(cell.cell_contents, result, visited)
    space = function.__globals__
    for code in _codes(function.__code__):
        for name in code.co_names:
            if name in space:
                value = space[name]
                if not isinstance(value, (*_SIMPLE, types.FunctionType)):
                    result.names[id(space), name] = space
                _visit(value, result, visited)


def _visit(value: Any, result: Variables, visited: set[Any]) -> None:
    function = getattr(value, "py_func", value)
    if isinstance(function, types.FunctionType):
        _collect(function, result, visited)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _is_library(module: str | None) -> bool:
    root = (module or "").split(".")[0]
    return root in sys.stdlib_module_names or root in ("numpy", "numba", "mpi4py", "scipy")


@contextlib.contextmanager
def watched_variables(function: Callable[..., Any], watch: Watch) -> Iterator[None]:
    """Let the function's variables hold watched values; what it binds to them stays."""
    if not isinstance(function, types.FunctionType):
        yield
        return
    variables = reachable(function)
    memory = watch.memory
    for cell, name in variables.cells.values():
        with contextlib.suppress(ValueError):
            cell.cell_contents = watch.value(cell.cell_contents, name)
    for (_, name), space in variables.names.items():
        space[name] = watch.value(space[name], name)
    for cell, name, is_read, is_bound in variables.stored:
        if is_read:
            memory.touch_place(cell, "variable", name, False)
        if is_bound:
            memory.touch_place(cell, "variable", name, True)
            if not is_read:
                memory.touch_place(cell, "variable", name, False)
    try:
        yield
    finally:
        for cell, _ in variables.cells.values():
            with contextlib.suppress(ValueError):
                cell.cell_contents = unwatched(cell.cell_contents)
        for (_, name), space in variables.names.items():
            space[name] = unwatched(space[name])
