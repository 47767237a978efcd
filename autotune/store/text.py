"""Text and JSON in a form that every database accepts.

A program may print anything. PostgreSQL refuses NUL, and no database accepts a lone surrogate (the
result of ``surrogateescape`` for a byte that is not UTF-8). Such characters are escaped, not
dropped. So text stays readable and can always be stored.
"""

from __future__ import annotations

import json
from typing import Any

from autotune.errors import WorkError
from runner.files.json_text import parse_json


def clean(text: str) -> str:
    """The ``text`` with NUL as ``\\x00`` and surrogates as ``\\udc80``; unchanged if clean."""
    if text.isascii() or not _has_surrogate(text):
        return text.replace("\0", "\\x00") if "\0" in text else text
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


def clean_or_none(text: str | None) -> str | None:
    """The clean text; None stays None."""
    return None if text is None else clean(text)


def _has_surrogate(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def dump(value: Any) -> str:
    """JSON text: pure ASCII (surrogates and NUL as escapes), keys in the given order.

    Infinity and NaN are written as Python writes them, because a strategy's attributes must come
    back exactly. Raises ``TypeError`` for values outside JSON.
    """
    return json.dumps(value, separators=(",", ":"))


def canonical(value: Any) -> str:
    """JSON text with sorted keys: equal values have equal text, so it can be hashed."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def load(text: str | None) -> Any:
    """Inverse of :func:`dump`; None stays None. Raises WorkError for text that is not JSON."""
    try:
        return None if text is None else parse_json(text)
    except (ValueError, TypeError) as problem:
        raise damaged_row(f"{problem}") from None


def load_object(text: str | None) -> dict[str, Any]:
    """The object in a column of JSON text; raises WorkError for anything else."""
    value = load(text)
    if not isinstance(value, dict):
        raise damaged_row(f"expected an object, found {value!r:.80}")
    return value


class DamagedRow(WorkError):
    """A row that autotune did not write; ``why`` is its fault."""

    why = ""


def damaged_row(why: str) -> DamagedRow:
    """The error for a row that autotune did not write."""
    error = DamagedRow(
        f"a row of this results database is damaged ({why}); somebody else wrote to "
        "it, or its disk is faulty.  Restore a copy from before, or use another "
        "database (--store)",
        code="store.damaged",
    )
    error.why = why
    return error
