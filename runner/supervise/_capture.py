"""Output of a program, held in bounded memory however much there is."""

from __future__ import annotations

from typing import Any

from runner.supervise._lines import LineScanner
from runner.supervise.model import PatternMatch


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
    """Standard output: head, tail, patterns and the last JSON line.  Standard error: tail."""

    def __init__(self, patterns: dict[str, str], head_bytes: int, tail_bytes: int) -> None:
        self.total_bytes = 0
        self._head_limit = head_bytes
        self._head = bytearray()
        self._stdout = Tail(tail_bytes)
        self._stderr = Tail(tail_bytes)
        self._lines = LineScanner(patterns)

    def add_stdout(self, chunk: bytes) -> None:
        self.total_bytes += len(chunk)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += chunk[:room]
        self._stdout.add(chunk)
        self._lines.add(chunk)

    def add_stderr(self, chunk: bytes) -> None:
        self.total_bytes += len(chunk)
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
            "stdout_head": printable(bytes(self._head)),
            "stdout_tail": self._stdout.text(),
            "stderr_tail": self._stderr.text(),
        }


def printable(data: bytes) -> str:
    """Text that any database takes: undecodable bytes and NUL become the replacement character."""
    return data.decode("utf-8", "replace").replace("\0", "\ufffd")
