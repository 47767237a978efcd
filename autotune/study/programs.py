"""The identity of a program: a hash over all that its command line names and that can change.

Of Python sources the code counts, without comments, docstrings and layout: an edit of these is no
other program.  Counted are the sources that the program starts and those that they import (see
:mod:`autotune.study.imports`): a runtime of :mod:`runner` that became faster is another program,
for the programs that run on it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import shutil
from functools import lru_cache
from pathlib import Path

from autotune.study.imports import entries, parsed, sources

_LIMIT = 256 << 20
"""Larger files (data sets named as arguments) are identified by size and time, not content."""


def program_hash(argv: tuple[str, ...], cwd: str | Path = ".") -> str:
    """SHA-256 (hex) over the executable, files among the arguments, and what Python imports.

    ``cwd`` is where the program is started: relative words are found from there.
    """
    digest = hashlib.sha256()
    words = (_executable(argv), *argv[1:])
    started = entries(words, cwd)
    scripts = {entry.path for entry in started}
    for word in words:
        path = Path(cwd) / word
        if path.resolve() not in scripts:
            _add(digest, path)
    code: dict[str, Path] = {}
    for entry in started:
        code |= sources(entry)
    for name, path in sorted(code.items()):
        digest.update(name.encode())
        digest.update(code_hash(path).encode())
    return digest.hexdigest()


def former_hash(argv: tuple[str, ...]) -> str:
    """The hash of before: sources as they lie there, a ``-m`` module with all that lie beside it.

    Equal to :func:`program_hash` where no Python source is started.
    """
    digest = hashlib.sha256()
    for word in (_executable(argv), *argv[1:]):
        _add(digest, Path(word))
    for module in _modules(argv):
        for path in _beside(module):
            digest.update(path.name.encode())
            _add(digest, path)
    return digest.hexdigest()


def uncovered(argv: tuple[str, ...], cwd: str | Path = ".") -> dict[str, Path]:
    """Sources that :func:`program_hash` counts and :func:`former_hash` did not: name -> path."""
    words = (_executable(argv), *argv[1:])
    known = {path.resolve() for module in _modules(argv) for path in _beside(module)}
    known |= {Path(word).resolve() for word in words}
    found: dict[str, Path] = {}
    for entry in entries(words, cwd):
        found |= sources(entry)
    return {name: path for name, path in sorted(found.items()) if path.resolve() not in known}


def file_hash(path: str) -> str:
    """SHA-256 (hex) over a file's content; of a large one as for :func:`program_hash`."""
    digest = hashlib.sha256()
    _add(digest, Path(path))
    return digest.hexdigest()


def code_hash(path: Path) -> str:
    """SHA-256 (hex) over the code of a Python source, over its bytes where it is none."""
    status = path.stat()
    return _code_hash(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4096)
def _code_hash(path: Path, changed: int, size: int) -> str:
    tree = parsed(path)
    if tree is None:
        return file_hash(str(path))
    parts: list[str] = []
    _write(tree, parts)
    return hashlib.sha256("".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _write(node: object, parts: list[str]) -> None:
    """The tree as text without what is empty: versions of Python differ in that alone."""
    if isinstance(node, ast.AST):
        parts.append(type(node).__name__ + "(")
        for name, value in sorted(ast.iter_fields(node)):
            if name == "body" and isinstance(value, list):
                value = _without_docstring(node, value)
            if value is None or value == []:
                continue
            parts.append(name + "=")
            _write(value, parts)
        parts.append(")")
    elif isinstance(node, list):
        parts.append("[")
        for item in node:
            _write(item, parts)
        parts.append("]")
    else:
        parts.append(f"{type(node).__name__} {node!r},")


def _without_docstring(node: ast.AST, body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements without texts that stand for themselves, such as those below an attribute."""
    return [
        one
        for one in body
        if not (
            isinstance(one, ast.Expr)
            and isinstance(one.value, ast.Constant)
            and isinstance(one.value.value, str)
        )
    ]


def _executable(argv: tuple[str, ...]) -> str:
    return shutil.which(argv[0]) or argv[0]


def _add(digest: hashlib._Hash, path: Path) -> None:
    try:
        if not path.is_file():
            return
        status = path.stat()
        if status.st_size > _LIMIT:
            digest.update(f"{path}:{status.st_size}:{status.st_mtime_ns}".encode())
            return
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    except OSError:
        # Unreadable arguments are the program's affair; it will say so when it runs.
        return


def _modules(argv: tuple[str, ...]) -> list[str]:
    return [argv[i + 1] for i, word in enumerate(argv[:-1]) if word == "-m" and i > 0]


def _beside(module: str) -> list[Path]:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return []
    if spec is None or not spec.origin:
        return []
    origin = Path(spec.origin)
    if spec.submodule_search_locations:
        return sorted(origin.parent.glob("*.py"))
    return [origin]
