"""The published block of a file: between two marks, among the lines of others."""

from __future__ import annotations

from dataclasses import dataclass

BEGIN = ">>> published by autotune"
CLOSE = "<<< end of what autotune published"


@dataclass(frozen=True)
class Split:
    """A text in three parts of whole lines; ``block`` begins and ends with the marks."""

    before: str
    block: str
    after: str

    @property
    def others(self) -> str:
        """The lines that autotune did not write."""
        return self.before + self.after


def split_block(text: str) -> Split | None:
    """The parts of a text with one published block; None unless both marks are there exactly once
    and in their order."""
    lines = text.splitlines(keepends=True)
    begins = [n for n, line in enumerate(lines) if BEGIN in line]
    ends = [n for n, line in enumerate(lines) if CLOSE in line]
    if len(begins) != 1 or len(ends) != 1 or begins > ends:
        return None
    first, last = begins[0], ends[0] + 1
    return Split("".join(lines[:first]), "".join(lines[first:last]), "".join(lines[last:]))


def without_block(text: str) -> str:
    """``text`` without the published block: from the first mark to the second, or to the end if the
    second mark is missing."""
    others, inside = [], False
    for line in text.splitlines(keepends=True):
        if BEGIN in line:
            inside = True
        if not inside:
            others.append(line)
        if CLOSE in line:
            inside = False
    return "".join(others)
