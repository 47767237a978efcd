"""The source of regions and of the functions that they call: text and tree.

A function is read once, from its file. Its tree keeps the lines of the file, so that every message
names the user's line.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import types
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.runtimes.mate.errors import GraphError


class Refusal(GraphError):
    """Code that cannot be compiled: ``line`` of ``file``, in the function ``title``, and the
    reason."""

    def __init__(self, file: str, line: int, title: str, what: str) -> None:
        super().__init__(
            f"{relative_name(file)}:{line}: {title}: {what}", code="mate.not_compilable"
        )
        self.file, self.line, self.title, self.what = file, line, title, what


@dataclass(eq=False)
class RegionSource:
    """A Python function that is to be compiled, with its text and the meaning of its names."""

    function: types.FunctionType
    title: str
    """``region compute`` or ``function flux``, for messages."""
    region: bool
    """True if the runtime calls it, with the state and the iteration."""
    file: str
    text: str
    tree: ast.FunctionDef
    """The definition, with the lines of the file; nobody changes it."""
    constants: dict[str, Any] = field(default_factory=dict)
    """Name -> number, or tuple of numbers, from a closure or a module (``module.NAME`` too)."""
    helpers: dict[str, RegionSource] = field(default_factory=dict)
    """Name -> Python function that is compiled with this one (``module.name`` too)."""
    libraries: dict[str, Any] = field(default_factory=dict)
    """Name -> ``numpy``, ``math``, or a function of them."""
    python: bool = False
    """True if it keeps Python's rules: negative indices count from the end, and all are checked."""
    jit: dict[str, Any] | None = None
    """The options of a function that the user has decorated with ``numba.njit``."""

    @property
    def parameters(self) -> list[str]:
        return [a.arg for a in self.tree.args.args]

    def helper(self, node: ast.expr) -> RegionSource | None:
        """The function named by a call's ``func``, if it is compiled, too."""
        return self.helpers.get(dotted_name(node))

    def refusal(self, node: ast.AST | None, what: str) -> Refusal:
        """The error for this place; ``what`` says what is impossible and what to do."""
        return self.refusal_at(getattr(node, "lineno", None) or self.tree.lineno, what)

    def refusal_at(self, line: int, what: str) -> Refusal:
        """The error for this line of the file."""
        return Refusal(self.file, line, self.title, what)


def relative_name(file: str) -> str:
    """A file's name in messages: relative if it is in or below the current directory."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file


def dotted_name(node: ast.expr) -> str:
    """``a``, ``a.b`` or ``a.b.c`` for names and their attributes; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted_name(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


def read(function: Any, name: str, region: bool = False) -> RegionSource:
    """The function with its tree; names are not resolved yet
    (:mod:`runner.runtimes.mate.compiled.names`).

    ``name`` is for messages; ``region``: it is a region of this name. Raises :class:`GraphError`
    for anything but a plain function with a source file.
    """
    title = f"{'region' if region else 'function'} {name}"
    if not isinstance(function, types.FunctionType):
        raise GraphError(
            f"{title} is a {type(function).__name__}, which cannot be compiled: expected a plain "
            "function (def), without decorators below it",
            code="mate.not_compilable",
        )
    code = function.__code__
    if code.co_name == "<lambda>":
        raise GraphError(
            f"{relative_name(code.co_filename)}:{code.co_firstlineno}: {title} is a lambda, which "
            "cannot be compiled: write it as a function (def)",
            code="mate.not_compilable",
        )
    if hasattr(function, "__wrapped__"):
        raise GraphError(
            f"{relative_name(code.co_filename)}:{code.co_firstlineno}: {title} has a decorator, "
            "which cannot be compiled: expected a plain function (def)",
            code="mate.not_compilable",
        )
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        raise GraphError(
            f"{title} has no source ({code.co_filename}), and compiled functions are made from "
            "it: put the function into a file",
            code="mate.not_compilable",
        )
    text = "".join(inspect.getblock(lines[code.co_firstlineno - 1 :]))
    tree = _definition(text, code)
    if not isinstance(tree, ast.FunctionDef):
        why = (
            "is async, and compiled code does not wait"
            if isinstance(tree, ast.AsyncFunctionDef)
            else "is not found there: if the file has changed, start the program again"
        )
        raise GraphError(
            f"{relative_name(code.co_filename)}:{code.co_firstlineno}: {title} {why}",
            code="mate.not_compilable",
        )
    tree.body = without_types(tree.body)
    return RegionSource(function, title, region, code.co_filename, text, tree)


def without_types(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements without the types of their variables."""
    return [_Plain().visit(statement) for statement in statements]


class _Plain(ast.NodeTransformer):
    """Removes the types of variables, which are irrelevant to the compiler."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)


def _definition(text: str, code: types.CodeType) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The definition that starts at the first line of ``text``, with the lines of the file."""
    is_indented = text[:1] in " \t"
    try:
        body = ast.parse(f"if 1:\n{text}" if is_indented else text).body
    except SyntaxError:
        return None
    if is_indented and isinstance(body[0], ast.If):
        body = body[0].body
    definition = body[0] if body else None
    if not isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return None
    if definition.name != code.co_name:
        return None
    ast.increment_lineno(definition, code.co_firstlineno - (2 if is_indented else 1))
    return definition
