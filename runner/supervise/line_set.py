"""The lines of a program's output as a set in bounded memory, to compare the outputs of runs.

Lines of one *shape* (the same but for digits, signs and blanks) are kept up to a number of
different ones. Of a longer shape the rest is summed, if its lines have integers only: the sum does
not depend on the order of the lines. So an output of 100 MB that repeats a few shapes costs little
more than a look at its shapes, and a line with a shape of its own is kept wherever it stands.

Everything here is a function of the bytes: it is the same in every process.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from zlib import crc32

from runner.types import PrintedLines

MOST_LINES = 2000
"""Largest number of different lines that are kept."""
MOST_BYTES = 128 * 1024
"""Largest number of their bytes, all together."""
LINE_BYTES = 1024
"""A line is kept up to this number of bytes; the rest of it is not compared."""
MOST_VALUES = 500
"""Largest number of values of a JSON line that are kept."""
OF_ONE_SHAPE = 64
"""Largest number of different lines of one shape that are kept from the beginning."""
_NO_TEXT = b"0123456789+- \t\r\0"
_FLOAT = re.compile(rb"\.|\d[eEdD][+-]?\d")
_MASK = (1 << 64) - 1


def shape_name(line: str) -> str:
    """The name of a line's shape in :attr:`PrintedLines.long`."""
    return _name(line.encode().translate(None, _NO_TEXT))


def _name(shape: bytes) -> str:
    # As text, since lines are kept as text: a byte that is none has become a replacement character.
    import hashlib  # Only here: most supervisors need none of it.

    return hashlib.sha256(shape.decode("utf-8", "replace").encode()).hexdigest()[:16]


class _Shape:
    """The lines of one shape: kept ones, and the number and sum of the others."""

    __slots__ = ("lines", "others", "summed", "total")

    def __init__(self) -> None:
        self.lines: dict[bytes, None] | None = {}
        """None once there are too many of them."""
        self.others = 0
        self.total = 0
        self.summed = True
        """Whether the shape has integers only, so that a sum of its lines says something."""


class LineSet:
    """Takes blocks of whole lines; not thread-safe."""

    def __init__(self) -> None:
        self._kept: dict[bytes, None] = {}
        self._bytes = 0
        self._shapes: dict[bytes, _Shape] = {}
        self._idle: set[bytes] = set()
        """Long shapes of which nothing more is recorded."""
        self._cut = False

    def add(self, block: bytes) -> None:
        """Add the lines of a block, of which the last may have no newline."""
        if b"\r" in block:
            block = block.replace(b"\r", b"\n")
        block = block.replace(b"\n\n", b"\n")
        shapes = block.translate(None, _NO_TEXT).split(b"\n")
        # Nearly all of a long output has few shapes: this test is made without a loop.
        idle, known = self._idle, self._shapes
        if idle.issuperset(shapes):
            return
        if self._cut and (known.keys() - idle).isdisjoint(shapes):
            return
        for shape, line in zip(shapes, block.split(b"\n"), strict=True):
            if shape in idle:
                continue
            if len(line) > LINE_BYTES:
                shape = line[:LINE_BYTES].translate(None, _NO_TEXT)
            held = known.get(shape)
            if held is None:
                held = self._begin(shape)
            if held is not None:
                self._put(shape, held, line)

    def _begin(self, shape: bytes) -> _Shape | None:
        """A new shape; None if there is no room for it."""
        if self._full:
            self._cut = True
            return None
        held = self._shapes[shape] = _Shape()
        return held

    @property
    def _full(self) -> bool:
        return len(self._kept) >= MOST_LINES or self._bytes >= MOST_BYTES

    def _put(self, shape: bytes, held: _Shape, line: bytes) -> None:
        if held.lines is not None:
            kept = line[:LINE_BYTES].rstrip()
            if not kept or kept in held.lines:
                return
            if len(held.lines) < OF_ONE_SHAPE and not self._full:
                held.lines[kept] = None
                self._keep(kept)
                return
            held.summed = not any(_FLOAT.search(one) for one in (*held.lines, kept))
            held.lines = None
            if not held.summed:
                self._idle.add(shape)
        line = line.rstrip()
        if held.summed and line:
            held.others += 1
            held.total = (held.total + crc32(line)) & _MASK

    def _keep(self, line: bytes) -> None:
        if line not in self._kept:
            self._kept[line] = None
            self._bytes += len(line)

    def close(self, tail: bytes) -> None:
        """Keep lines of the output's end, too: a long shape ends with its most telling lines."""
        lines = tail.replace(b"\r", b"\n").split(b"\n")[1:]
        for line in lines[-OF_ONE_SHAPE:]:
            kept = line[:LINE_BYTES]
            held = self._shapes.get(kept.translate(None, _NO_TEXT))
            if held is not None and held.lines is None and not self._full:
                self._keep(kept.rstrip())

    def printed(self, last: Mapping[str, Any] | None = None) -> PrintedLines:
        """The lines as text, in the order of their first occurrence.

        Each value of the program's ``last`` JSON line is a line of its own, since such a line has
        times and results side by side. Other JSON lines are left out.
        """
        texts = (one.replace(b"\0", b"").decode("utf-8", "replace") for one in self._kept)
        lines = [text for text in texts if not text.startswith("{")]
        lines += _values("", last or {})
        long = {
            _name(shape): f"{held.others}:{held.total:x}" if held.summed else ""
            for shape, held in self._shapes.items()
            if held.lines is None
        }
        known = dict.fromkeys(line for line in lines if line.strip())
        return PrintedLines(tuple(known), long, self._cut)


def _values(name: str, value: Any) -> list[str]:
    """``NAME = VALUE`` for each value of a JSON document; an array has one name."""
    if isinstance(value, Mapping):
        parts = [(f"{name}.{key}".strip("."), inner) for key, inner in value.items()]
    elif isinstance(value, list):
        parts = [(name, inner) for inner in value]
    else:
        return [f"{name} = {value}"[:LINE_BYTES]]
    found: list[str] = []
    for key, inner in parts:
        if len(found) >= MOST_VALUES:
            break
        found += _values(key, inner)
    return found[:MOST_VALUES]
