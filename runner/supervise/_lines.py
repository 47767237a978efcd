"""Searching lines in a stream that may be gigabytes, binary, or one endless line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from runner.supervise._literal import required_literal
from runner.supervise.model import JSON_LIMIT, LINE_LIMIT, PatternMatch

_OBJECT = re.compile(rb'^\{[ \t]*["}]', re.MULTILINE)


class LineScanner:
    """Feeds whole lines to the patterns and keeps the last JSON object.

    A line longer than ``LINE_LIMIT`` is cut for the patterns; one longer than ``JSON_LIMIT`` is
    forgotten from there to its end.
    """

    def __init__(self, patterns: dict[str, str]) -> None:
        self._patterns = [_Pattern(name, regex) for name, regex in patterns.items()]
        self._carry = b""
        self._skipping = False
        self.json_line: dict[str, Any] | None = None

    @property
    def matches(self) -> dict[str, PatternMatch]:
        return {p.name: p.found for p in self._patterns if p.found is not None}

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
        # Only a JSON line is worth holding beyond what the patterns see.
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
        for pattern in self._patterns:
            pattern.scan(block)
        found = _last_json_object(block)
        if found is not None:
            self.json_line = found


class _Pattern:
    def __init__(self, name: str, regex: str) -> None:
        self.name = name
        self.found: PatternMatch | None = None
        self._regex = re.compile(regex)
        literal = required_literal(regex)
        self._literal = literal.encode("utf-8") if literal is not None else None

    def scan(self, block: bytes) -> None:
        for line in self._candidates(block):
            for match in self._regex.finditer(line):
                add = PatternMatch.begin if self.found is None else self.found.and_then
                self.found = add(match.group(), match.groups())

    def _candidates(self, block: bytes) -> list[str]:
        """Lines that match, found as cheaply as this pattern allows."""
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
    # Plain output is told apart at the speed of a text search, other text in braces by the regex.
    if not block.startswith(b"{") and b"\n{" not in block:
        return None
    for match in reversed(list(_OBJECT.finditer(block))):
        stop = block.find(b"\n", match.start())
        line = block[match.start() : stop if stop >= 0 else len(block)].rstrip()
        if line.endswith(b"}") and len(line) <= JSON_LIMIT:
            found = _parse(line)
            if found is not None:
                return found
    return None


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
