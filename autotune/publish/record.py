"""Which files this user has published: a list for ``unpublish`` and ``verify-published``.

The files themselves hold all that is needed; the list only finds them again.
"""

from __future__ import annotations

import json
from pathlib import Path

from autotune.errors import WorkError
from runner import places
from runner.whole import write_whole


def record_path() -> Path:
    """``published.json`` beside the results database's usual place."""
    return places.data("published.json")


def published() -> list[Path]:
    """The paths in the order of publication.  WorkError for a damaged list."""
    place = record_path()
    try:
        data = json.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as problem:
        raise WorkError(
            f"cannot read the list of published files {place}: {problem}; give the files "
            "as arguments instead"
        ) from None
    if not isinstance(data, list) or not all(isinstance(p, str) for p in data):
        raise WorkError(
            f"{place} is not a list of published files; give the files as arguments instead"
        )
    return [Path(p) for p in data]


def remember(path: Path) -> None:
    """Add ``path``; nothing where it is there already."""
    known = published()
    if path not in known:
        _write([*known, path])


def forget(path: Path) -> None:
    known = published()
    if path in known:
        _write([p for p in known if p != path])


def _write(paths: list[Path]) -> None:
    place = record_path()
    try:
        write_whole(place, json.dumps([str(p) for p in paths], indent=1) + "\n", mode=0o600)
    except OSError as problem:
        raise WorkError(f"cannot write {place}: {problem.strerror}") from None
