"""Ways in which documents are damaged: cut, doubled, spoilt, with numbers that are none."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

ODD = (
    *("nan", "inf", "-1", "1e999", "9" * 40, "9" * 400, "9" * 5000, "²", "٣", "0x10"),
    *("null", "true", '""', "[]", "{}", "'", '"', "[" * 100_000, '{"a":' * 2000),
    *(
        "\0",
        "\udcff",
        "\ufeff",
        "é",
        "\n",
        "\r\n",
        "[" * 50,
        "(" * 50,
        "$(id)",
        "`id`",
        "; rm",
        "../",
    ),
    *("${HOME}", "--mca", "__import__('os')", "%s%n", "<script>", "\x1b[31m", "=", ",", "#"),
)
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def _cut(source: random.Random, text: str) -> str:
    return text[: source.randrange(len(text) + 1)]


def _remove(source: random.Random, text: str) -> str:
    a, b = sorted(source.randrange(len(text) + 1) for _ in range(2))
    return text[:a] + text[min(b, a + 40) :]


def _insert(source: random.Random, text: str) -> str:
    at = source.randrange(len(text) + 1)
    return text[:at] + source.choice(ODD) + text[at:]


def _double(source: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True) or [text]
    line = source.randrange(len(lines))
    return "".join([*lines[:line], lines[line], *lines[line:]])


def _drop_line(source: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True) or [text]
    del lines[source.randrange(len(lines))]
    return "".join(lines)


def _swap_lines(source: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True) or [text]
    a, b = (source.randrange(len(lines)) for _ in range(2))
    lines[a], lines[b] = lines[b], lines[a]
    return "".join(lines)


def _other_number(source: random.Random, text: str) -> str:
    found = list(_NUMBER.finditer(text))
    if not found:
        return text
    match = source.choice(found)
    return text[: match.start()] + source.choice(ODD[:12]) + text[match.end() :]


def _character(source: random.Random, text: str) -> str:
    if not text:
        return "x"
    at = source.randrange(len(text))
    return text[:at] + chr(source.randrange(1, 0x250)) + text[at + 1 :]


def _nonsense(source: random.Random, text: str) -> str:
    return "".join(chr(source.randrange(1, 0x2000)) for _ in range(source.randrange(60)))


DAMAGES: tuple[Callable[[random.Random, str], str], ...] = (
    _cut, _remove, _insert, _double, _drop_line, _swap_lines, _other_number, _character, _nonsense,
)  # fmt: skip


def damaged(seeds: Sequence[str], seed: int) -> str:
    """One of the documents with one to four damages; the same for the same seed."""
    source = random.Random(seed)
    text = source.choice(list(seeds))
    for _ in range(source.randrange(1, 5)):
        text = source.choice(DAMAGES)(source, text)
    return text
