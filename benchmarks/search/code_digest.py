"""The digest of the code of a contestant, by which its stored results are found again."""

from __future__ import annotations

import ast
import hashlib
import platform
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path

from autotune.strategies import find, names
from benchmarks.search.peers import is_peer, peer_module

ROOT = Path(__file__).parents[2]
_OURS = ("autotune", "runner", "benchmarks")
_DISTRIBUTIONS = {"sklearn": "scikit-learn"}
"""Packages whose distribution has another name."""


def strategy_and_preset(name: str) -> tuple[str, str | None]:
    """The parts of ``NAME`` or ``NAME:PRESET``; the name of a strategy may have a colon itself."""
    if name in names():
        return name, None
    base, _, preset = name.partition(":")
    return base, preset or None


def contestant_module(name: str) -> str:
    """The module of a contestant: ours, with or without a preset and a suffix, or a peer.

    Raises UsageError for a wrong name.
    """
    if is_peer(name):
        return peer_module(name)
    return find(strategy_and_preset(name.partition("+")[0])[0]).__module__


@cache
def code_digest(*modules: str, without: str = "") -> str:
    """Digest of modules of this project and of all that they import, directly or not.

    Of modules of this project the text counts, of packages from elsewhere the version, and Python's
    own. The ``__init__`` of a package counts only where something is imported from the package
    itself, so a change of one strategy is none of another.
    Modules of the package ``without`` are left out, with what only they import.
    """
    sources, packages = _imported(modules, without)
    state = hashlib.sha256(platform.python_version().encode())
    for path in sorted(sources):
        state.update(f"{path.relative_to(ROOT)} ".encode())
        state.update(hashlib.sha256(path.read_bytes()).digest())
    for package in sorted(packages):
        state.update(f"{package} {_versions(package)} ".encode())
    return state.hexdigest()[:16]


def _imported(modules: Sequence[str], without: str) -> tuple[set[Path], set[str]]:
    """Files of this project, and top-level names of packages from elsewhere."""
    sources: set[Path] = set()
    packages: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if without and f"{name}.".startswith(f"{without}."):
            continue
        top = name.partition(".")[0]
        if top not in _OURS:
            packages.update({top} - sys.stdlib_module_names)
            continue
        path = _source(name)
        if path is not None and path not in sources:
            sources.add(path)
            waiting += _names(path, path.read_text())
    return sources, packages


@cache
def _names(path: Path, text: str) -> list[str]:
    """The modules that a file may import; of ``from a import b`` both ``a`` and ``a.b``.

    ``a`` is left out where ``a.b`` is a module of this project.
    """
    found: list[str] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = [part for part in parts if _source(part)]
            found += modules if len(modules) == len(parts) else [node.module, *modules]
    return found


def _source(module: str) -> Path | None:
    """The file of a module of this project; None if it is none."""
    place = ROOT.joinpath(*module.split("."))
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((path for path in files if path.is_file()), None)


def _versions(package: str) -> list[str]:
    """Versions of what is installed of a package; a look at every distribution takes seconds."""
    try:
        return [version(_DISTRIBUTIONS.get(package, package))]
    except PackageNotFoundError:
        return sorted(version(name) for name in set(_distributions().get(package, ())))


@cache
def _distributions() -> dict[str, list[str]]:
    return dict(packages_distributions())
