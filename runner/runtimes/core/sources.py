"""The sources that compiled code depends on, found without importing them."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import re
from pathlib import Path
from typing import Any

from runner.files.paths import is_file

_IMPORT = re.compile(rb"^\s*(?:from\s+([\w.]+)\s+import|import\s+([\w.]+))", re.MULTILINE)


def sha256(data: bytes = b"") -> Any:
    """A hash like that of :mod:`hashlib`, whose import loads OpenSSL, which takes 3 ms."""
    for module in ("_sha2", "_sha256", "hashlib"):
        with contextlib.suppress(ImportError):
            return importlib.import_module(module).sha256(data)
    raise AssertionError("there is no hashlib")


def sources_key(*modules: str) -> bytes:
    """A hash of the sources of these modules and of all their imports.

    Imports are followed within :mod:`runner` and within each module's own top-level package.
    """
    packages = {"runner", *(module.partition(".")[0] for module in modules)}
    waiting, seen = list(modules), dict[str, bytes]()
    while waiting:
        module = waiting.pop()
        if module in seen or module.partition(".")[0] not in packages:
            continue
        path = source(module)
        seen[module] = path.read_bytes() if path else b""
        waiting += [(a or b).decode() for a, b in _IMPORT.findall(seen[module])]
        for package, name in _members(seen[module]):
            if package.partition(".")[0] not in packages:
                continue
            if (parent := source(package)) and parent.name == "__init__.py":
                waiting.append(f"{package}.{name}")
    digest = sha256()
    for module, text in sorted(seen.items()):
        digest.update(module.encode() + b"\0" + text)
    return bytes(digest.digest())


def _members(text: bytes) -> list[tuple[str, str]]:
    """(package, name) of ``from package import name``: the name may be a module of the package."""
    found = re.findall(rb"^\s*from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n(]+)", text, re.MULTILINE)
    return [(a.decode(), n) for a, names in found for n in re.findall(r"\w+", names.decode())]


@functools.cache
def source(module: str) -> Path | None:
    """The file of a module, found without importing its packages."""
    top, *rest = module.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None or spec.origin is None or not spec.has_location:
        return None
    if not rest:
        return Path(spec.origin)
    for root in spec.submodule_search_locations or ():
        path = Path(root, *rest)
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if is_file(file):
                return file
    return None
