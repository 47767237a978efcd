"""What this user has published, for ``unpublish`` and ``verify-published``: two lists.

One has the paths, the other one how the last verification of each file ended.  The files themselves
hold all that is needed: the lists are only used to find and to show them.  A verification is never
taken from there, it is made again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from autotune.errors import WorkError
from runner import files
from runner.files.json_text import parse_json
from runner.files.private_files import write_private

_LARGEST = 4 * files.MIB
_REMEDY = "write it anew as a JSON list of the files' paths, [] if there are none"


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
            f"cannot read the list of published files {place}: {problem}; {_REMEDY}",
            code="published.list_unreadable",
        ) from None
    if not isinstance(data, list) or not all(isinstance(p, str) for p in data):
        raise WorkError(
            f"{place} is not a list of published files; {_REMEDY}",
            code="published.list_damaged",
        )
    return [Path(p) for p in data]


def remember_file(path: Path) -> None:
    """Add ``path`` to the list unless it is there already.  Raises WorkError."""
    paths = published()
    if path not in paths:
        _write([*paths, path])


def forget(path: Path) -> None:
    """Remove ``path`` from the list.  Raises WorkError."""
    paths = published()
    if path in paths:
        _write([p for p in paths if p != path])


def _write(paths: list[Path]) -> None:
    place = record_path()
    try:
        write_private(place, json.dumps([str(p) for p in paths], indent=1) + "\n")
    except OSError as problem:
        raise WorkError(
            f"cannot write {place}: {problem.strerror}", code="published.unwritable"
        ) from None


@dataclass(frozen=True)
class Verification:
    """The last verification of a file.  ``date`` is ISO 8601; ``in_force`` is None if not
    observable.

    ``gains`` are sentences about new comparisons, one for each program; empty without comparison.
    """

    date: str
    in_force: bool | None
    why: str
    expired: bool = False
    gains: tuple[str, ...] = ()


def verifications_path() -> Path:
    """``verified.json`` beside the list of paths."""
    return files.data("verified.json")


def last_verifications() -> dict[str, Verification]:
    """The last verification of each file by its path; empty if there is no readable list."""
    try:
        data = parse_json(files.read_text(verifications_path(), _LARGEST))
        return {path: _parse(row) for path, row in data.items()}
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return {}


def remember_verifications(fresh: Mapping[Path, Verification]) -> None:
    """Store verifications by the paths of their files.  What cannot be written is left out: the
    verification itself counts, and it was printed."""
    rows = last_verifications() | {str(path): one for path, one in fresh.items()}
    text = json.dumps({path: asdict(one) for path, one in rows.items()}, indent=1)
    try:
        write_private(verifications_path(), text + "\n")
    except OSError:
        return


def _parse(row: dict[str, Any]) -> Verification:
    one = Verification(**row | {"gains": tuple(str(words) for words in row["gains"])})
    if not (isinstance(one.date, str) and isinstance(one.why, str)):
        raise TypeError("no verification")
    return one
