"""A text that every match of a regular expression must contain.

``bytes.find`` runs over output a hundred times faster than a regular expression over its lines, so
lines without that text are never looked at.  The scan is deliberately timid: in doubt, None.
"""

from __future__ import annotations

import re

_FLAG_GROUP = re.compile(r"\(\?[aiLmsux-]+[:)]")
_SHORTEST = 3


def required_literal(pattern: str) -> str | None:
    """Longest run of plain characters outside groups and sets; None if there is none to rely on.

    None too where alternatives or inline flags make "every match contains it" hard to see.
    """
    if "|" in pattern or _FLAG_GROUP.search(pattern):
        return None
    runs = _plain_runs(pattern)
    best = max(runs, key=len, default="")
    return best if len(best) >= _SHORTEST else None


def _plain_runs(pattern: str) -> list[str]:
    runs = [""]
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            escaped = pattern[at + 1 : at + 2]
            # An escaped letter or digit is a class, an anchor or a reference.
            runs = [*runs, ""] if escaped.isalnum() else [*runs[:-1], runs[-1] + escaped]
            at += 2
        elif char == "[":
            runs.append("")
            at = _end_of_set(pattern, at)
        elif char == "(":
            runs.append("")
            at = _end_of_group(pattern, at)
        elif char in "*?{":
            # What stands before may be missing.
            runs = [*runs[:-1], runs[-1][:-1], ""]
            at = pattern.find("}", at) + 1 if char == "{" and "}" in pattern[at:] else at + 1
        elif char in "+^$.":
            runs.append("")
            at += 1
        else:
            runs[-1] += char
            at += 1
    return runs


def _end_of_set(pattern: str, at: int) -> int:
    at += 1
    if pattern[at : at + 1] == "^":
        at += 1
    if pattern[at : at + 1] == "]":
        at += 1
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1


def _end_of_group(pattern: str, at: int) -> int:
    depth = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 2
        elif char == "[":
            at = _end_of_set(pattern, at)
        else:
            depth += {"(": 1, ")": -1}.get(char, 0)
            at += 1
            if depth == 0:
                break
    return at
