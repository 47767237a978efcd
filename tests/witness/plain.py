"""Data without what differs between two runs of the same code: dates, ids, places, wording."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.revision import ROOT

VOLATILE = frozenset({
    "bytes", "created_at", "date", "finished_at", "fingerprint", "here", "host", "machine",
    "mpi_bin", "started_at", "tool", "tool_version",
})  # fmt: skip
"""Keys whose values are of this machine or this moment, or the length of a page."""
WORDING = frozenset({
    "checked", "code", "description", "done", "message", "probe", "reason", "summary", "text",
    "title", "undo", "why", "words",
})  # fmt: skip
"""Keys whose values are sentences or codes."""
DATA = frozenset({"mpi"})
"""Keys whose values may look like sentences."""
DIGITS = 6
_PATTERNS = (
    (re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::[\d.]+)?(?: UTC|\+00:00|Z)?)?"), "(date)"),
    (re.compile(r"\b(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{8,64}\b"), "(hash)"),
    (re.compile(re.escape(str(ROOT))), "(root)"),
    (re.compile(re.escape(sys.prefix)), "(python)"),
)


def plain(value: Any, place: Path | None = None, key: str = "") -> Any:
    """JSON types, with floats of six digits; ``place`` is the folder of this recording."""
    value = value.item() if hasattr(value, "item") else value  # A number of numpy.
    if isinstance(value, dict):
        return {_text(f"{k}", place): plain(v, place, f"{k}") for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, place, key) for one in value]
    if value is None or isinstance(value, bool):
        return value
    if key in VOLATILE:
        return f"({key})"
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, str):
        wording = key in WORDING or (key not in DATA and _is_sentence(value))
        return "(words)" if wording else _text(value, place)
    return value


def _text(text: str, place: Path | None) -> str:
    if place is not None:
        text = text.replace(str(place), "(place)")
    for pattern, word in _PATTERNS:
        text = pattern.sub(word, text)
    return text


def _is_sentence(text: str) -> bool:
    """Four words or more, none of them an option or an assignment of a command line."""
    words = text.split()
    return len(words) >= 4 and not any("=" in word or word.startswith("-") for word in words)


def write_document(file: Path, document: Any, place: Path | None = None) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(plain(document, place), indent=1, sort_keys=True)
    file.write_text(f"{text}\n")


def write_lines(file: Path, lines: Iterable[Any], place: Path | None = None) -> None:
    """A document for each line: texts as they are, all else as JSON."""
    file.parent.mkdir(parents=True, exist_ok=True)
    texts = (
        line if isinstance(line, str) else json.dumps(plain(line, place), sort_keys=True)
        for line in lines
    )
    file.write_text("".join(f"{text}\n" for text in texts))
