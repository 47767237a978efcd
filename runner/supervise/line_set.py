"""The lines of a program's output as a set in bounded memory, to compare the outputs of runs.

Lines of one *shape* differ only in digits, signs and blanks. A limited number of different ones is
kept. If the lines have only integers, the rest is summed: the sum does not depend on their order.
So an output of 100 MB with few shapes costs little, and a line with a unique shape is always kept.

The results depend only on the bytes and are the same in every process.
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
"""Largest number of their bytes in total."""
LINE_BYTES = 1024
"""A line is kept up to this number of bytes; the rest is not compared."""
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
    # As text, since lines are kept as text: an undecodable byte is now a replacement character.
    import hashlib  # Only here: most supervisors do not need it.

    return hashlib.sha256(shape.decode("utf-8", "replace").encode()).hexdigest()[:16]


class _Shape:
    """The lines of one shape: the kept ones, and number and sum of the others."""

    __slots__ = ("has_sum", "lines", "others", "total")

    def __init__(self) -> None:
        self.lines: dict[bytes, None] | None = {}
        """None once there are too many of them."""
        self.others = 0
        self.total = 0
        self.has_sum = True
        """True if the shape has only integers, so that a sum of its lines is meaningful."""


class LineSet:
    """Takes blocks of whole lines; not thread-safe."""

    def __init__(self) -> None:
        self._lines: dict[bytes, None] = {}
        self._bytes = 0
        self._shapes: dict[bytes, _Shape] = {}
        self._idle: set[bytes] = set()
        """Long shapes of which no more lines are recorded."""
        self._cut = False

    def add(self, block: bytes) -> None:
        """Add the lines of a block; the last one may lack a newline."""
        if b"\r" in block:
            block = block.replace(b"\r", b"\n")
        block = block.replace(b"\n\n", b"\n")
        shapes = block.translate(None, _NO_TEXT).split(b"\n")
        # Nearly all lines of a long output have few shapes: this test needs no loop.
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
        """Keep lines of the output's end, too: a long shape's last lines say most."""
        lines = tail.replace(b"\r", b"\n").split(b"\n")[1:]
        for line in lines[-OF_ONE_SHAPE:]:
            text = line[:LINE_BYTES]
            record = self._shapes.get(text.translate(None, _NO_TEXT))
            if record is not None and record.lines is None and not self._full:
                self._keep(text.rstrip())

    def printed_lines(self, last: Mapping[str, Any] | None = None) -> PrintedLines:
        """The lines as text, in the order of their first occurrence.

        Each value of the program's ``last`` JSON line is a separate line, since it mixes times and
        results. Other JSON lines are left out.
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
