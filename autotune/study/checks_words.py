"""What was checked of the results behind an answer, in words."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.notes import Note
from autotune.study.parts import ResultChecks

_VERIFIED = {
    "application": "by the application",
    "pattern": "by --verify",
    "json": "by --verify",
}


def checks_words(checks: ResultChecks) -> str:
    """What was checked, in one line; raises LookupError or TypeError for other documents."""
    by = checks["verified"]
    if by is None:
        said = "results were not checked"
    else:
        said = f"results verified {_VERIFIED[by]} in {checks['verified_runs']} of {checks['runs']}"
        said += " runs"
    output = checks["output"]
    if output is None:
        return said if by is not None else f"{said} (--verify)"
    lines, other = output["lines"], output["differing"] + output["expected"]
    if not output["compared"] or not lines:
        return said if by is not None else f"{said}: no --verify, no output to compare"
    if other:
        return f"{said}; {other} of {lines} output lines differ"
    return f"{said}; {lines} output lines are the same" + (" (--verify)" if by is None else "")


def shown_lines(note: Note) -> list[str]:
    """The lines of output that a note is about, side by side; empty for other notes."""
    rows = note.data.get("shown", ())
    if not isinstance(rows, Sequence):
        return []
    found = []
    for row in rows:
        found += [f"  - {row['reference']}", f"  + {row['setting']}" if row["setting"] else ""]
    return [line for line in found if line]
