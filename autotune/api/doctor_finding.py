"""A finding of ``autotune doctor``: the result of one check."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

GOOD, NOTE, BAD = "ok", "note", "missing"


@dataclass
class DoctorFinding:
    """The result of one check; ``advice`` says what to do if ``state`` is not "ok"."""

    state: str
    """ok, or what is wrong."""
    code: str
    """The name of the check."""
    what: str
    words: str
    advice: str = ""
    data: dict[str, Any] = field(default_factory=dict)
