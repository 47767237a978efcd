"""Paths that are not ours: what cannot be looked at is not there, and no question raises.

A directory in PATH that may not be entered, a name that is too long, a loop of links, a dead file
server: ``Path.is_file()`` and its relatives raise for these. Whoever looks for a file among places
of others asks these functions instead.
"""

from __future__ import annotations

import os
from pathlib import Path


def is_file(path: str | Path) -> bool:
    """Whether there is a regular file, as far as this process can see."""
    return os.path.isfile(path)  # noqa: PTH113 (Path.is_file raises)


def is_folder(path: str | Path) -> bool:
    """Whether there is a directory, as far as this process can see."""
    return os.path.isdir(path)  # noqa: PTH112 (Path.is_dir raises)


def exists(path: str | Path) -> bool:
    """Whether there is something, as far as this process can see."""
    return os.path.exists(path)  # noqa: PTH110 (Path.exists raises)


def entries(folder: str | Path) -> list[Path]:
    """What is in a directory, by name; empty if it cannot be listed."""
    try:
        return sorted(Path(folder).iterdir())
    except (OSError, ValueError):
        return []


def real_path(path: str | Path) -> Path:
    """The path without links, as far as they can be followed; a loop of links stays as it is."""
    return Path(os.path.realpath(path))
