"""Files that a user named; each is written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from autotune.errors import UsageError
from runner.files import atomic_file
from runner.files.paths import exists, is_folder


def write_text(path: Path, text: str) -> None:
    """Replace a file in one step; raises UsageError if the file cannot be written."""
    try:
        with atomic_file(path) as file:
            file.write(text.encode())
    except OSError as problem:
        raise UsageError(
            f"cannot write {path}: {problem.strerror}", code="file.unwritable"
        ) from None


def check_writable(path: Path) -> None:
    """Raise UsageError, before a long measurement starts, if the file cannot be written later."""
    if is_folder(path) or not os.access(path if exists(path) else path.parent, os.W_OK):
        raise UsageError(
            f"cannot write {path}: its directory does not exist or may not be written; "
            "name another file",
            code="file.unwritable",
        )
