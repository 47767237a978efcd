"""Output of a program, held in bounded memory however much there is."""

from __future__ import annotations

from typing import Any

from runner.supervise._lines import LineScanner
from runner.supervise.model import PatternMatch


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
        # Cutting only at twice the limit keeps a stream of short writes from copying the tail
        # for every one of them.
        if len(self._data) > 2 * self._limit:
            del self._data[: -self._limit]

    def text(self) -> str:
        return printable(bytes(self._data[-self._limit :]) if self._limit else b"")


class Capture:
    """Standard output: head, tail, patterns and the last JSON line.  Standard error: both ends."""

    def __init__(self, patterns: dict[str, str], head_bytes: int, tail_bytes: int) -> None:
        self.total_bytes = 0
        self._head = Head(head_bytes)
        self._stderr_head = Head(head_bytes)
        self._stdout = Tail(tail_bytes)
        self._stderr = Tail(tail_bytes)
        self._lines = LineScanner(patterns)

    def add_stdout(self, chunk: bytes) -> None:
        self.total_bytes += len(chunk)
        self._head.add(chunk)
        self._stdout.add(chunk)
        self._lines.add(chunk)

    def add_stderr(self, chunk: bytes) -> None:
        self.total_bytes += len(chunk)
        self._stderr_head.add(chunk)
        self._stderr.add(chunk)

    def close(self) -> None:
        """End of output: a last line without a newline counts too."""
        self._lines.close()

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
    """Text that any database takes: undecodable bytes become the replacement character.

    NULs are left out: a launcher ends its messages with one, and they say nothing.
    """
    return data.replace(b"\0", b"").decode("utf-8", "replace")
