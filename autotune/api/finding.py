"""One line of what ``doctor`` reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

GOOD, NOTE, BAD = "ok", "note", "missing"


@dataclass
class Finding:
    """``advice`` is what to do where the state is not ok."""

    state: str
    what: str
    words: str
    advice: str = ""
    data: dict[str, Any] = field(default_factory=dict)
