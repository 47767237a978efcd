"""The output of a program, kept in bounded memory, and the patterns searched in its lines.

The output may be gigabytes, binary, or one endless line. Its head and tail are kept, and patterns
are searched line by line.

:func:`required_literal` finds a text that every match of a regular expression contains.
``bytes.find`` is a hundred times faster than a regular expression over lines, so lines without this
text are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

from runner.files.json_text import parse_json
from runner.supervise.line_set import LineSet
from runner.supervise.messages import JSON_LIMIT, LINE_LIMIT, VERIFY, PatternMatch
from runner.types import PrintedLines


class Head:
    """The first ``limit`` bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()

    def add(self, chunk: bytes) -> None:
        room = self._limit - len(self._data)
        if room > 0:
            self._data += chunk[:room]

    def text(self) -> str:
        return printable(bytes(self._data))


class Tail:
    """The last ``limit`` bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()

    def add(self, chunk: bytes) -> None:
        self._data += chunk[-self._limit :] if self._limit else b""
        # The tail is cut only at twice the limit; otherwise every short write would copy it.
        if len(self._data) > 2 * self._limit:
            del self._data[: -self._limit]

    @property
    def data(self) -> bytes:
        return bytes(self._data[-self._limit :]) if self._limit else b""

    def text(self) -> str:
        return printable(self.data)


MOST_MARK_LINES = 65_536
MOST_MARK_BYTES = 16 << 20
"""More different marked lines, or more bytes of them in total, are dropped."""


class MarkedLines:
    """Removes lines that match the regular expression ``mark`` from a stream; keeps distinct ones.

    Reports of many ranks would push a program's own message out of the kept part.
    """

    def __init__(self, mark: str) -> None:
        self._mark = re.compile(mark.encode(), re.MULTILINE) if mark else None
        self._carry = b""
        self._lines: dict[bytes, None] = {}
        self._room = MOST_MARK_BYTES

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(printable(line) for line in self._lines)

    def rest(self, chunk: bytes, at_end: bool = False) -> bytes:
        """The bytes of the other lines, up to the last complete line unless ``at_end``."""
        if self._mark is None:
            return chunk
        data = self._carry + chunk
        end = len(data) if at_end or len(data) > LINE_LIMIT else data.rfind(b"\n") + 1
        whole, self._carry = data[:end], data[end:]
        if not self._mark.search(whole):
            return whole
        others = []
        for line in whole.splitlines(keepends=True):
            if not self._mark.search(line):
                others.append(line)
            else:
                self._keep(line.strip())
        return b"".join(others)

    def _keep(self, line: bytes) -> None:
        fits = len(self._lines) < MOST_MARK_LINES and len(line) <= self._room
        if fits and line not in self._lines:
            self._lines[line] = None
            self._room -= len(line)


class Capture:
    """Keeps head, tail, patterns and last JSON line of standard output; head and tail of the
    errors.

    Lines of the errors that match ``mark`` are kept separately ("": none).
    """

    def __init__(
        self,
        patterns: dict[str, str],
        head_bytes: int,
        tail_bytes: int,
        mark: str = "",
    ) -> None:
        self.total_bytes = 0
        self._head = Head(head_bytes)
        self._stderr_head = Head(head_bytes)
        self._stdout = Tail(tail_bytes)
        self._stderr = Tail(tail_bytes)
        self._line_set = LineSet()
        self._lines = LineScanner(patterns, self._line_set)
        self._mark_lines = MarkedLines(mark)

    def add_stdout(self, chunk: bytes) -> None:
        self.total_bytes += len(chunk)
        self._head.add(chunk)
        self._stdout.add(chunk)
        self._lines.add(chunk)

    def add_stderr(self, chunk: bytes) -> None:
        self._add_error(self._mark_lines.rest(chunk))

    def _add_error(self, chunk: bytes) -> None:
        self.total_bytes += len(chunk)
        self._stderr_head.add(chunk)
        self._stderr.add(chunk)

    def close(self) -> None:
        """Handle the end of output: a last line without a newline counts, too."""
        self._add_error(self._mark_lines.rest(b"", at_end=True))
        self._lines.close()
        self._line_set.close(self._stdout.data)

    @property
    def printed_lines(self) -> PrintedLines:
        """The lines of standard output as a set."""
        return self._line_set.printed_lines(self._lines.json_line)

    @property
    def marked_lines(self) -> tuple[str, ...]:
        """The distinct lines of the errors that match the mark."""
        return self._mark_lines.lines

    @property
    def matches(self) -> dict[str, PatternMatch]:
        return self._lines.matches

    @property
    def json_line(self) -> dict[str, Any] | None:
        return self._lines.json_line

    @property
    def texts(self) -> dict[str, str]:
        """The fields of the result that hold output."""
        return {
            "stdout_head": self._head.text(),
            "stdout_tail": self._stdout.text(),
            "stderr_head": self._stderr_head.text(),
            "stderr_tail": self._stderr.text(),
        }


def printable(data: bytes) -> str:
    """Text that every database accepts: undecodable bytes become the replacement character.

    NULs are removed; a launcher ends its messages with one, and they carry no information.
    """
    return data.replace(b"\0", b"").decode("utf-8", "replace")


_OBJECT = re.compile(rb'^\{[ \t]*["}]', re.MULTILINE)


class LineScanner:
    """Passes whole lines to the patterns and a line set, and keeps the last JSON object.

    Patterns see at most ``LINE_LIMIT`` bytes of a line. If a line is longer than ``JSON_LIMIT``,
    the rest of it is dropped.
    """

    def __init__(self, patterns: dict[str, str], line_set: LineSet | None = None) -> None:
        self._patterns = [_Pattern(name, regex) for name, regex in patterns.items()]
        self._line_set = line_set
        self._carry = b""
        self._skipping = False
        self.json_line: dict[str, Any] | None = None

    @property
    def matches(self) -> dict[str, PatternMatch]:
        return {p.name: p.match for p in self._patterns if p.match is not None}

    def add(self, chunk: bytes) -> None:
        if self._skipping:
            end = chunk.find(b"\n")
            if end < 0:
                return
            chunk = chunk[end + 1 :]
            self._skipping = False
        data = self._carry + chunk
        end = data.rfind(b"\n") + 1
        self._scan(data[:end])
        self._carry = data[end:]
        # Only a JSON line is kept beyond the bytes that patterns see.
        if len(self._carry) > (JSON_LIMIT if self._carry.startswith(b"{") else LINE_LIMIT):
            self._scan(self._carry[:LINE_LIMIT])
            self._carry = b""
            self._skipping = True

    def close(self) -> None:
        self._scan(self._carry)
        self._carry = b""

    def _scan(self, block: bytes) -> None:
        if not block:
            return
        if self._line_set is not None:
            self._line_set.add(block)
        for pattern in self._patterns:
            pattern.scan(block)
        document = _last_json_object(block)
        if document is not None:
            self.json_line = document


_COMMA_SEPARATOR = re.compile(r",(?:\\s|[ ?*+])*\(|\)(?:\\s|[ ?*+])*,")
"""A pattern that names a comma beside its group: there the comma separates numbers."""


_NEGATION = re.compile(r"(?:^|[^a-z])(?:(?:un|in|non|dis|mis)-?|not\s+)$", re.IGNORECASE)
"""Negates the word that follows: UNSUCCESSFUL, not verified."""


class _Pattern:
    def __init__(self, name: str, regex: str) -> None:
        self.name = name
        self.match: PatternMatch | None = None
        self._regex = re.compile(regex)
        self._separator = "," if _COMMA_SEPARATOR.search(regex) else ""
        literal = required_literal(regex)
        self._literal = literal.encode("utf-8") if literal is not None else None

    def scan(self, block: bytes) -> None:
        for line in self._candidates(block):
            for match in self._regex.finditer(line):
                if self.name == VERIFY and _NEGATION.search(line, 0, match.start()):
                    continue
                one = PatternMatch.of(match, self._separator)
                self.match = one if self.match is None else self.match.and_then(one)

    def _candidates(self, block: bytes) -> list[str]:
        """Lines that may match, searched in the cheapest way that this pattern allows."""
        if self._literal is not None:
            return [_text(line[:LINE_LIMIT]) for line in _lines_with(block, self._literal)]
        lines = _text(block).split("\n")
        search = self._regex.search
        return [line[:LINE_LIMIT] for line in lines if search(line[:LINE_LIMIT])]


def _text(data: bytes) -> str:
    return data.replace(b"\r\n", b"\n").removesuffix(b"\r").decode("utf-8", "replace")


def _lines_with(block: bytes, literal: bytes) -> Iterator[bytes]:
    """Lines of ``block`` that contain ``literal``."""
    at = block.find(literal)
    while at >= 0:
        start = block.rfind(b"\n", 0, at) + 1
        end = block.find(b"\n", at)
        end = len(block) if end < 0 else end
        yield block[start:end]
        at = block.find(literal, end)


def _last_json_object(block: bytes) -> dict[str, Any] | None:
    # A text search handles plain output quickly; the regular expression checks other lines with
    # braces.
    if not block.startswith(b"{") and b"\n{" not in block:
        return None
    for match in reversed(list(_OBJECT.finditer(block))):
        stop = block.find(b"\n", match.start())
        line = block[match.start() : stop if stop >= 0 else len(block)].rstrip()
        if line.endswith(b"}") and len(line) <= JSON_LIMIT:
            document = _parse(line)
            if document is not None:
                return document
    return None


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        document = parse_json(line)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


_SHORTEST = 3


def required_literal(pattern: str) -> str | None:
    """Longest literal text in every match of a pattern; None if no text is certain.

    Python's own pattern parser finds it, outside of groups, sets and repetitions.
    """
    syntax = _parser.parse(pattern)
    if syntax.state.flags & re.IGNORECASE:
        return None
    runs = [""]
    for kind, value in syntax:
        if kind is _constants.LITERAL:
            runs[-1] += chr(value)
        else:
            runs.append("")
    best = max(runs, key=len)
    plain = len(best) >= _SHORTEST and not any("\ud800" <= char <= "\udfff" for char in best)
    return best if plain else None
