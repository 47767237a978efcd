"""Program identity: a hash over all that its command line names and that can change.

For Python sources the code counts, without comments, docstrings and layout, because a change of
these does not change the program. The hash covers the sources that the program starts and those
that they import, found without running it. So a change in a runtime of :mod:`runner` changes the
identity of the programs that run on it.

Imports are followed within :mod:`runner` and within the program's own directory, but not into the
standard library and installed packages. A dotted name in a string counts as an import if there is
such a module (kernels are loaded in this way). A formatted string,
``f"runner.programs.nas.{name}"``, counts as all modules of that package. What a program finds in
other ways (``sys.path``, a plugin) is not seen.

The file has the hashes first, and then the search for the sources.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import runner
from runner.files.paths import is_file, real_path

_LIMIT = 256 << 20
"""Larger files (data sets among the arguments) are identified by size and time, not by content."""


def program_hash(argv: tuple[str, ...], cwd: str | Path = ".") -> str:
    """SHA-256 (hex) over the executable, files among the arguments, and imported Python sources.

    ``cwd`` is the directory in which the program is started; relative words are found from there.
    """
    digest = hashlib.sha256()
    words = (_executable(argv), *argv[1:])
    sources_to_run = entries(words, cwd)
    scripts = {entry.path for entry in sources_to_run}
    for word in words:
        path = Path(cwd) / word
        if real_path(path) not in scripts:
            _add(digest, path)
    code: dict[str, str] = {}
    for entry in sources_to_run:
        code |= {name: code_hash(path) for name, path in sources(entry).items()}
    for name, source_hash in sorted(code.items()):
        digest.update(name.encode())
        digest.update(source_hash.encode())
    return digest.hexdigest()


def file_hash(path: str) -> str:
    """SHA-256 (hex) over a file's content; a large file counts as in :func:`program_hash`."""
    digest = hashlib.sha256()
    _add(digest, Path(path))
    return digest.hexdigest()


def code_hash(path: Path) -> str:
    """SHA-256 (hex) over the code of a Python source; over the bytes of any other file."""
    status = path.stat()
    return _code_hash(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4096)
def _code_hash(path: Path, changed_ns: int, size: int) -> str:
    tree = syntax_tree(path)
    if tree is None:
        return file_hash(str(path))
    parts: list[str] = []
    _write(tree, parts)
    return hashlib.sha256("".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _write(node: object, parts: list[str]) -> None:
    """Write the tree as text without empty fields, in which versions of Python differ."""
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
    """Statements without bare strings, such as docstrings of attributes."""
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
        if not is_file(path):
            return
        status = path.stat()
        if status.st_size > _LIMIT:
            digest.update(f"{path}:{status.st_size}:{status.st_mtime_ns}".encode())
            return
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    except OSError:
        # An argument that cannot be read concerns the program, which reports it when it runs.
        return


RUNNER = real_path(runner.__file__).parent.parent
"""The directory that contains the package :mod:`runner`."""
MOST_FILES = 2000
"""Largest number of sources that are followed for one program."""
_LARGEST = 4 << 20
"""Largest size of a source in bytes; a larger file is data."""
_PYTHON = re.compile(r"(python|pypy)[0-9.]*")
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_SAFE = re.compile(r"-[bBdEhiOqRsSuvx]*[IP][bBdEhiIOPqRsSuvx]*")
_MODULE_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_LONGEST_NAME = 200


@dataclass(frozen=True)
class Roots:
    """Where modules are searched: the ``own`` directories first, then that of :mod:`runner`.

    ``only`` restricts ``own`` to one top-level package: that of an installed module.
    """

    own: Path | None = None
    only: str | None = None

    def find(self, module: str) -> Path | None:
        """The source of a module; for a package, its ``__init__.py``."""
        top = module.partition(".")[0]
        if self.own is not None and self.only in (None, top) and (f := _source(self.own, module)):
            return f
        return _source(RUNNER, module) if top == "runner" else None

    def name(self, path: Path) -> str:
        """The name of a source, independent of its directory on this machine."""
        for root in (self.own, RUNNER):
            if root is not None and path.is_relative_to(root):
                return path.relative_to(root).as_posix()
        return path.name


@dataclass(frozen=True)
class StartedSource:
    """The Python source that a command line starts, and where its imports are searched."""

    path: Path
    module: str
    roots: Roots


def entries(argv: Sequence[str], cwd: str | Path = ".") -> list[StartedSource]:
    """The scripts and ``-m`` modules that a command line starts; empty for a compiled program.

    ``argv[0]`` is the program as it was found on PATH. Never raises.
    """
    sources = []
    place = Path(cwd)
    for at, word in enumerate(argv):
        is_module = at > 1 and argv[at - 1] == "-m"
        module_root = None if is_module and leaves_out_cwd(argv[: at - 1]) else place
        if is_module and (entry := _module(word, module_root)):
            sources.append(entry)
        elif _is_script(argv, at, place / word):
            path = real_path(place / word)
            sources.append(StartedSource(path, path.stem, Roots(path.parent)))
    return sources


def sources(entry: StartedSource) -> dict[str, Path]:
    """All sources that ``entry`` imports, and itself: name below its root -> path."""
    waiting = [(entry.path, entry.module)]
    paths_by_name: dict[str, Path] = {}
    attempts: set[str] = set()
    while waiting and len(paths_by_name) < MOST_FILES:
        path, module = waiting.pop()
        name = entry.roots.name(path)
        if name in paths_by_name:
            continue
        paths_by_name[name] = path
        for other in _import_names(path, module, entry.roots):
            if other in attempts:
                continue
            attempts.add(other)
            if (source := entry.roots.find(other)) is not None:
                waiting += _with_parents(source, other, entry.roots)
    return dict(sorted(paths_by_name.items()))


def syntax_tree(path: Path) -> ast.Module | None:
    """The syntax tree; None for a file that is no Python source."""
    try:
        status = path.stat()
        return _parse(path, status.st_mtime_ns, status.st_size)
    except OSError:
        return None


@lru_cache(maxsize=4096)
def _parse(path: Path, changed_ns: int, size: int) -> ast.Module | None:
    try:
        return None if size > _LARGEST else ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def interpreter(program: Sequence[str]) -> Path | None:
    """The Python interpreter that a command starts, with its folder; None if it starts another."""
    python = shutil.which(program[0]) if _PYTHON.fullmatch(Path(program[0]).name) else None
    return None if python is None else Path(python).absolute()


def _is_script(argv: Sequence[str], at: int, path: Path) -> bool:
    try:
        if not is_file(path):
            return False
    except OSError:  # A word that is no file name, such as a program given with ``-c``.
        return False
    return path.suffix == ".py" or _after_interpreter(argv, at) or (at == 0 and _shebang(path))


def _after_interpreter(argv: Sequence[str], at: int) -> bool:
    """Whether all words between the nearest interpreter and this one are its options."""
    before = at - 1
    while before > 0 and (argv[before].startswith("-") or argv[before - 1] in _WITH_VALUE):
        if argv[before] in ("-", "-c", "-m"):
            return False
        before -= 1
    return before >= 0 and _PYTHON.fullmatch(Path(argv[before]).name) is not None


def _shebang(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            first = file.readline(200)
    except OSError:
        return False
    return first.startswith(b"#!") and b"python" in first


def leaves_out_cwd(argv: Sequence[str]) -> bool:
    """Whether Python is told by an option, or by a variable, to import nothing from there."""
    for word in reversed(argv):
        if _PYTHON.fullmatch(Path(word).name):
            break
        if _SAFE.fullmatch(word):
            return True
    return bool(os.environ.get("PYTHONSAFEPATH"))


def _module(module: str, cwd: Path | None) -> StartedSource | None:
    """The module as ``python -m`` finds it: in ``cwd``, if given, then on Python's path."""
    if not _MODULE_NAME.fullmatch(module):
        return None
    top = module.partition(".")[0]
    working_directory = [] if cwd is None else [real_path(cwd)]
    import_path = [RUNNER, *(real_path(p) for p in sys.path if p)]
    for root in [*working_directory, *import_path]:
        path = _source(root, module)
        if path is None:
            continue
        roots = Roots(root) if root in working_directory else Roots(root, top)
        if path.name == "__init__.py" and is_file(path.parent / "__main__.py"):
            return StartedSource(path.parent / "__main__.py", f"{module}.__main__", roots)
        return StartedSource(path, module, roots)
    return None


def _source(root: Path, module: str) -> Path | None:
    place = root.joinpath(*module.split("."))
    for path in (place / "__init__.py", place.with_name(place.name + ".py")):
        if is_file(path):
            return path
    return None


def _with_parents(path: Path, module: str, roots: Roots) -> Iterator[tuple[Path, str]]:
    """A module and the packages that are imported with it."""
    yield path, module
    while "." in module:
        module = module.rpartition(".")[0]
        if (package := roots.find(module)) is not None:
            yield package, module


def _import_names(path: Path, module: str, roots: Roots) -> Iterator[str]:
    """Names that may be modules; attributes of packages among them do no harm."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    if package:
        yield package
    try:
        status = path.stat()
    except OSError:
        return
    for name in _names(path, status.st_mtime_ns, status.st_size, package):
        if name.endswith(".*"):
            yield from _all_of(name[:-2], roots)
        else:
            yield name


@lru_cache(maxsize=4096)
def _names(path: Path, changed_ns: int, size: int, package: str) -> tuple[str, ...]:
    """The imports of a source of ``package``; ``a.b.*`` stands for any module of a package."""
    tree = _parse(path, changed_ns, size)
    names: dict[str, None] = {}
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= dict.fromkeys(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names |= dict.fromkeys(_from(node, package))
        elif isinstance(node, ast.JoinedStr):
            first = node.values[0] if node.values else None
            text = first.value if isinstance(first, ast.Constant) else ""
            if isinstance(text, str) and text.endswith(".") and _MODULE_NAME.fullmatch(text[:-1]):
                names[f"{text}*"] = None
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            if "." in text and len(text) < _LONGEST_NAME and _MODULE_NAME.fullmatch(text):
                names[text] = None
    return tuple(names)


def _from(node: ast.ImportFrom, package: str) -> Iterator[str]:
    base = node.module or ""
    if node.level:
        parts = package.split(".") if package else []
        above = parts[: len(parts) - node.level + 1]
        base = ".".join([*above, *([base] if base else [])])
    if base:
        yield base
    for alias in node.names:
        yield f"{base}.{alias.name}" if base else alias.name


def _all_of(package: str, roots: Roots) -> Iterator[str]:
    home = roots.find(package)
    if home is not None and home.name == "__init__.py":
        for path in sorted(home.parent.glob("*.py")):
            yield f"{package}.{path.stem}"
