"""The identity of a program: a hash over all that its command line names and that can change."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
from pathlib import Path

_LIMIT = 256 << 20
"""Larger files (data sets named as arguments) are identified by size and time, not content."""


def program_hash(argv: tuple[str, ...]) -> str:
    """SHA-256 (hex) over the executable, files among the arguments, and a ``-m`` module."""
    digest = hashlib.sha256()
    executable = shutil.which(argv[0])
    for path in [Path(executable or argv[0]), *(Path(word) for word in argv[1:])]:
        _add(digest, path)
    for module in _modules(argv):
        for path in _sources(module):
            digest.update(path.name.encode())
            _add(digest, path)
    return digest.hexdigest()


def file_hash(path: str) -> str:
    """SHA-256 (hex) over a file's content; of a large one as for :func:`program_hash`."""
    digest = hashlib.sha256()
    _add(digest, Path(path))
    return digest.hexdigest()


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


def _sources(module: str) -> list[Path]:
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
