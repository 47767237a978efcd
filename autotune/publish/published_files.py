"""The list of the files that this user has published, for ``unpublish`` and ``verify-published``.

The files themselves hold all that is needed; the list is only used to find them.
"""

from __future__ import annotations

import json
from pathlib import Path

from autotune.errors import WorkError
from runner import files
from runner.files.json_text import parse_json
from runner.files.private_files import write_private

_LARGEST = 4 * files.MIB


def record_path() -> Path:
    """``published.json`` in the usual folder of the results database."""
    return files.data("published.json")


def published() -> list[Path]:
    """The paths in the order of publication.  Raises WorkError if the list is damaged."""
    place = record_path()
    try:
        data = parse_json(files.read_text(place, _LARGEST))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as problem:
        raise WorkError(
            f"cannot read the list of published files {place}: {problem}; give the files "
            "as arguments instead",
            code="published.list_unreadable",
        ) from None
    if not isinstance(data, list) or not all(isinstance(p, str) for p in data):
        raise WorkError(
            f"{place} is not a list of published files; give the files as arguments instead",
            code="published.list_damaged",
        )
    return [Path(p) for p in data]


def remember_file(path: Path) -> None:
    """Add ``path`` to the list unless it is there already.  Raises WorkError."""
    known = published()
    if path not in known:
        _write([*known, path])


def forget(path: Path) -> None:
    """Remove ``path`` from the list.  Raises WorkError."""
    known = published()
    if path in known:
        _write([p for p in known if p != path])


def _write(paths: list[Path]) -> None:
    place = record_path()
    try:
        write_private(place, json.dumps([str(p) for p in paths], indent=1) + "\n")
    except OSError as problem:
        raise WorkError(
            f"cannot write {place}: {problem.strerror}", code="published.unwritable"
        ) from None
