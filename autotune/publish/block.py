"""The published part of a file, between two marks, and the lines of others around it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

BEGIN = ">>> published by autotune"
CLOSE = "<<< end of what autotune published"
BLANK = "checksum: sha256:" + "0" * 64
"""The line of the checksum before it is known."""
_CHECKSUM = re.compile(r"checksum: sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Split:
    """A text in three parts, whole lines each; ``block`` begins and ends with the marks."""

    before: str
    block: str
    after: str

    @property
    def others(self) -> str:
        """All that autotune did not write."""
        return self.before + self.after


def split(text: str) -> Split | None:
    """The parts of a text with one published block; None where its marks are not both there once,
    the first one first."""
    lines = text.splitlines(keepends=True)
    begins = [n for n, line in enumerate(lines) if BEGIN in line]
    ends = [n for n, line in enumerate(lines) if CLOSE in line]
    if len(begins) != 1 or len(ends) != 1 or begins > ends:
        return None
    first, last = begins[0], ends[0] + 1
    return Split("".join(lines[:first]), "".join(lines[first:last]), "".join(lines[last:]))


def without_block(text: str) -> str:
    """``text`` without its published part: from the first mark to the second, or, where that is
    gone, to the end."""
    kept, inside = [], False
    for line in text.splitlines(keepends=True):
        if BEGIN in line:
            inside = True
        if not inside:
            kept.append(line)
        if CLOSE in line:
            inside = False
    return "".join(kept)


def seal(text: str) -> str:
    """``text`` with its checksum filled in; it must contain one blank checksum line.

    The checksum is that of the block where there is one, else of the whole text.
    """
    return text.replace(BLANK, f"checksum: sha256:{_sum(_sealed_part(text))}", 1)


def untouched(text: str) -> bool:
    """Whether the published part of ``text`` has the checksum that it names.

    Lines around a block may come and go.  The checksum of a whole file, as earlier versions wrote
    it, is one too.
    """
    part = _sealed_part(text)
    found = _CHECKSUM.search(part)
    return found is not None and found[1] in (_sum(unsealed(part)), _sum(unsealed(text)))


def unsealed(text: str) -> str:
    """``text`` with a blank checksum: what the other lines say is to be compared alone."""
    return _CHECKSUM.sub(BLANK, text, count=1)


def _sealed_part(text: str) -> str:
    parts = split(text)
    return text if parts is None else parts.block


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
