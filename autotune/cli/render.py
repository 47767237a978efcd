"""How things look on a terminal: tables and words that fit 80 columns, plain lines elsewhere."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from autotune.errors import UsageError
from runner.whole import whole

WIDTH = 80
_ACTING = ("Cc", "Cf", "Cs")
"""Categories of characters: control, format (which turn the direction, too), surrogates."""


def shown(text: str) -> str:
    """The text with escapes in place of what a terminal would act on: it may come from a program's
    output, a database or a file of somebody else."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c if c in "\n\t" or unicodedata.category(c) not in _ACTING else ascii(c)[1:-1] for c in text
    )


class PlainConsole(Console):
    """Acts on our own styles, never on control characters in what is printed."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(shown(text), **options)


def console() -> Console:
    """Standard output; without a terminal 80 columns and no colour."""
    return PlainConsole(
        width=None if sys.stdout.isatty() else WIDTH, soft_wrap=False, highlight=False
    )


def error_console() -> Console:
    """Standard error, for messages and progress; long words (paths, commands) are not broken."""
    return PlainConsole(stderr=True, soft_wrap=True, highlight=False)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> RenderableType:
    """A light table below its title; a column whose name starts with ``>`` is right-aligned.

    Where two spaces between the columns would break words in a terminal's width, there is one.
    """
    rows, titles = [list(row) for row in rows], [name.lstrip(">") for name in columns]
    longest = [max(map(len, column)) for column in zip(titles, *rows, strict=False)]
    wide = sum(longest) + 2 * (len(longest) - 1) > WIDTH
    drawn = Table(box=None, pad_edge=False, collapse_padding=wide)
    for column, heading in zip(columns, titles, strict=True):
        drawn.add_column(
            heading,
            justify="right" if column.startswith(">") else "left",
            overflow="fold",
        )
    for row in rows:
        drawn.add_row(*(Text(shown(cell)) for cell in row))
    return Group(Text(title), drawn) if title else drawn


def write_json(data: Any, target: str) -> None:
    """Write JSON to a file (whole or not at all), or to standard output for ``-``."""
    text = json.dumps(data, indent=2, allow_nan=False, default=str) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    write_text(Path(target), text)


def write_text(path: Path, text: str) -> None:
    """Replace a file in one step; raises UsageError where that place cannot be written."""
    try:
        with whole(path) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise UsageError(f"cannot write {path}: {problem.strerror}") from None
