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

    __slots__ = ("has_sum", "lines", "others", "total")

    def __init__(self) -> None:
        self.lines: dict[bytes, None] | None = {}
        """None once there are too many of them."""
        self.others = 0
        self.total = 0
        self.has_sum = True
        """Whether the shape has integers only, so that a sum of its lines says something."""


class LineSet:
    """Takes blocks of whole lines; not thread-safe."""

    def __init__(self) -> None:
        self._lines: dict[bytes, None] = {}
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
        idle, records = self._idle, self._shapes
        if idle.issuperset(shapes):
            return
        if self._cut and (records.keys() - idle).isdisjoint(shapes):
            return
        for shape, line in zip(shapes, block.split(b"\n"), strict=True):
            if shape in idle:
                continue
            if len(line) > LINE_BYTES:
                shape = line[:LINE_BYTES].translate(None, _NO_TEXT)
            record = records.get(shape)
            if record is None:
                record = self._begin(shape)
            if record is not None:
                self._put(shape, record, line)

    def _begin(self, shape: bytes) -> _Shape | None:
        """A new shape; None if there is no room for it."""
        if self._full:
            self._cut = True
            return None
        record = self._shapes[shape] = _Shape()
        return record

    @property
    def _full(self) -> bool:
        return len(self._lines) >= MOST_LINES or self._bytes >= MOST_BYTES

    def _put(self, shape: bytes, record: _Shape, line: bytes) -> None:
        if record.lines is not None:
            text = line[:LINE_BYTES].rstrip()
            if not text or text in record.lines:
                return
            if len(record.lines) < OF_ONE_SHAPE and not self._full:
                record.lines[text] = None
                self._keep(text)
                return
            record.has_sum = not any(_FLOAT.search(one) for one in (*record.lines, text))
            record.lines = None
            if not record.has_sum:
                self._idle.add(shape)
        line = line.rstrip()
        if record.has_sum and line:
            record.others += 1
            record.total = (record.total + crc32(line)) & _MASK

    def _keep(self, line: bytes) -> None:
        if line not in self._lines:
            self._lines[line] = None
            self._bytes += len(line)

    def close(self, tail: bytes) -> None:
        """Keep lines of the output's end, too: a long shape ends with its most telling lines."""
        lines = tail.replace(b"\r", b"\n").split(b"\n")[1:]
        for line in lines[-OF_ONE_SHAPE:]:
            text = line[:LINE_BYTES]
            record = self._shapes.get(text.translate(None, _NO_TEXT))
            if record is not None and record.lines is None and not self._full:
                self._keep(text.rstrip())

    def printed_lines(self, last: Mapping[str, Any] | None = None) -> PrintedLines:
        """The lines as text, in the order of their first occurrence.

        Each value of the program's ``last`` JSON line is a line of its own, since such a line has
        times and results side by side. Other JSON lines are left out.
        """
        texts = (one.replace(b"\0", b"").decode("utf-8", "replace") for one in self._lines)
        lines = [text for text in texts if not text.startswith("{")]
        lines += _values("", last or {})
        long = {
            _name(shape): f"{record.others}:{record.total:x}" if record.has_sum else ""
            for shape, record in self._shapes.items()
            if record.lines is None
        }
        unique = dict.fromkeys(line for line in lines if line.strip())
        return PrintedLines(tuple(unique), long, self._cut)


def _values(name: str, value: Any) -> list[str]:
    """``NAME = VALUE`` for each value of a JSON document; an array has one name."""
    if isinstance(value, Mapping):
        parts = [(f"{name}.{key}".strip("."), inner) for key, inner in value.items()]
    elif isinstance(value, list):
        parts = [(name, inner) for inner in value]
    else:
        return [f"{name} = {value}"[:LINE_BYTES]]
    lines: list[str] = []
    for key, inner in parts:
        if len(lines) >= MOST_VALUES:
            break
        lines += _values(key, inner)
    return lines[:MOST_VALUES]
