"""A finding of ``autotune doctor``: the result of one check."""

from __future__ import annotations

import shutil
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


def command_finding(name: str, code: str, what: str, lacking: str, advice: str) -> DoctorFinding:
    """Where a command of the system is; if it is missing, ``lacking`` and ``advice`` are told."""
    place = shutil.which(name)
    if place:
        return DoctorFinding(GOOD, code, what, place)
    return DoctorFinding(NOTE, code, what, lacking, advice)
