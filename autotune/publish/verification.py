"""The last verification of each published file: when, with what outcome.

``autotune verify-published`` stores it beside the list of published files. It is for display only:
a verification is never taken from here, it is made again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autotune.publish.recheck import Recheck
from autotune.publish.verify import FileState
from runner import files
from runner.files import MIB, read_text
from runner.files.json_text import parse_json
from runner.files.private_files import write_private

_LARGEST = 4 * MIB


@dataclass(frozen=True)
class Verification:
    """The outcome for one file.  ``date`` is ISO 8601; ``in_force`` is None if not observable.

    ``gains`` are sentences about new comparisons, one for each program; empty without comparison.
    """

    date: str
    in_force: bool | None
    why: str
    expired: bool = False
    gains: tuple[str, ...] = ()


def record_path() -> Path:
    """``verified.json`` in the usual folder of the results database."""
    return files.data("verified.json")


def last_verifications() -> dict[str, Verification]:
    """The last verification of each file by its path; empty if there is no readable record."""
    try:
        data = parse_json(read_text(record_path(), _LARGEST))
        return {path: _parse(row) for path, row in data.items()}
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return {}


def remember_verifications(states: Sequence[FileState], checks: Sequence[Recheck]) -> None:
    """Store the outcome of a verification.  A record that cannot be written is left out."""
    found = last_verifications()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    for state in states:
        source = state.header.evidence.source if state.header else None
        found[str(state.path)] = Verification(
            now,
            state.in_force,
            state.why,
            state.expiry is not None,
            tuple(f"{c.status}, {c.program}: {c.words}" for c in checks if c.source == source),
        )
    text = json.dumps({path: asdict(one) for path, one in found.items()}, indent=1)
    try:
        write_private(record_path(), text + "\n")
    except OSError:
        return  # The verification itself counts, and it was printed.


def _parse(row: dict[str, Any]) -> Verification:
    one = Verification(**row | {"gains": tuple(str(words) for words in row["gains"])})
    if not (isinstance(one.date, str) and isinstance(one.why, str)):
        raise TypeError("no verification")
    return one
