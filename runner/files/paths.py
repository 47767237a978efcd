"""Checks of foreign paths: what is not accessible does not exist, and no check raises.

``Path.is_file()`` and its relatives raise for an inaccessible directory in PATH, a too long name, a
loop of links, or a dead file server. Use these functions to look for files at paths of others.
"""

from __future__ import annotations

import os
from pathlib import Path


def is_file(path: str | Path) -> bool:
    """True if this is a regular file, as far as this process can see."""
    return os.path.isfile(path)  # noqa: PTH113 (Path.is_file raises)


def is_folder(path: str | Path) -> bool:
    """True if this is a directory, as far as this process can see."""
    return os.path.isdir(path)  # noqa: PTH112 (Path.is_dir raises)


def exists(path: str | Path) -> bool:
    """True if this path exists, as far as this process can see."""
    return os.path.exists(path)  # noqa: PTH110 (Path.exists raises)


def entries(folder: str | Path) -> list[Path]:
    """The content of a directory, sorted by name; empty if it cannot be listed."""
    try:
        return sorted(Path(folder).iterdir())
    except (OSError, ValueError):
        return []


def real_path(path: str | Path) -> Path:
    """The path without links, as far as they can be followed; a loop of links stays as it is."""
    return Path(os.path.realpath(path))


def file_state(path: str | Path) -> tuple[str, int, int]:
    """The path, the time of its last change in ns, and its size in bytes.

    Both numbers are -1 for a path that does not exist, as far as this process can see.
    """
    try:
        state = os.stat(path)  # noqa: PTH116 (a path of others)
    except (OSError, ValueError):
        return (str(path), -1, -1)
    return (str(path), state.st_mtime_ns, state.st_size)
