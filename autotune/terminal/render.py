"""Rendering: tables and text for 80 columns on a terminal, plain lines elsewhere."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from autotune.files import write_text
from autotune.notes import Note
from autotune.terminal.message import fold
from autotune.wording import whole_number

WIDTH = 80
INTERRUPTION_NOTE = "Interrupted. Every finished run is stored; the same command continues."
NARROW = 20
"""A smaller value of COLUMNS is ignored."""
_ACTING = ("Cc", "Cf", "Cs")
"""Unicode categories that are escaped: control, format (direction), surrogates."""


def escape_controls(text: str) -> str:
    """The text with escapes in place of characters that a terminal acts on.  Text may come from a
    program's output, a database or somebody else's file."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        c if c in "\n\t" or unicodedata.category(c) not in _ACTING else ascii(c)[1:-1] for c in text
    )


class PlainConsole(Console):
    """A console with autotune's own styles, without control characters and pictures in the text.

    ``:name:`` stays as it is: rich would write a picture of that name, whose list takes 3 ms.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(escape_controls(text), **options)


class ErrorConsole(PlainConsole):
    """Standard error, on which messages are folded (:mod:`autotune.terminal.message`)."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(fold(text, self.width) if self.is_terminal else text, **options)


def width() -> int | None:
    """Columns of standard output: COLUMNS, else the terminal's own width (None), else 80."""
    columns = whole_number(os.environ.get("COLUMNS", ""))
    if columns is not None and columns >= NARROW:
        return columns
    return None if sys.stdout.isatty() else WIDTH


def note_line(code: str, words: str) -> str:
    """A note or a warning with its code, as it is printed beside a result."""
    return f"note [{code}]: {words}"


def console() -> Console:
    """Standard output; without a terminal it has no colour, and 80 columns or those of COLUMNS."""
    return PlainConsole(width=width(), soft_wrap=False, highlight=False)


def error_console() -> Console:
    """Standard error, for messages; paths and commands are not broken."""
    return ErrorConsole(stderr=True, soft_wrap=True, highlight=False)


def to_stderr(note: Note) -> None:
    """The words of a note on standard error."""
    print_message(note.words)


def print_message(text: str) -> None:
    """Print a text on standard error."""
    error_console().print(text, markup=False)


@contextmanager
def interruption(text: str) -> Iterator[None]:
    """Print a text on standard error if the body is interrupted (Ctrl-C)."""
    try:
        yield
    except KeyboardInterrupt:
        print_message(text)
        raise


def print_line(text: str = "", *, bold: bool = False, whole: bool = False) -> None:
    """Print a text on standard output.

    ``whole``: its lines are not wrapped, because they are made to be copied.
    """
    style = "bold" if bold else None
    console().print(text, markup=False, style=style, soft_wrap=whole or None)


def print_note(note: Note) -> None:
    """Print a note or a warning beside a result."""
    print_line(note_line(note.code, note.words))


def print_hanging(head: str, words: str) -> None:
    """Print ``words`` after ``head``, see :func:`hanging`."""
    console().print(hanging(head, words))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, see :func:`table`."""
    console().print(table(title, columns, rows))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> RenderableType:
    """A light table below its title; a column whose name starts with ``>`` is right-aligned.

    Columns are separated by two spaces, or by one if two would break words at this width.  If one
    space would break words, too, the first column is printed on lines of its own.
    """
    grid = _Table(columns, [list(row) for row in rows])
    return Group(Text(title), grid) if title else grid


class _Hanging:
    """Text after a head; no line ends in blanks."""

    def __init__(self, head: str, words: str) -> None:
        self.head = escape_controls(head)
        self.words = Text(escape_controls(words))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(options.max_width - len(self.head), 1)
        head = self.head
        for line in self.words.wrap(console, room, overflow="fold"):
            line.rstrip()
            yield Text(head, no_wrap=True) + line
            head = " " * len(self.head)


def hanging(head: str, words: str) -> RenderableType:
    """``words`` after ``head``; the next lines begin in the column where the words began."""
    return _Hanging(head, words)


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


class _Table:
    """A table whose column widths are computed when it is drawn."""

    def __init__(self, columns: Sequence[str], rows: list[list[str]]) -> None:
        self.titles = [name.lstrip(">") for name in columns]
        self.right = [name.startswith(">") for name in columns]
        self.rows = rows
        self._widths = [max(map(len, column)) for column in zip(self.titles, *rows, strict=False)]

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        gaps = len(self._widths) - 1
        least = [
            max(map(len, column)) if right else max(map(_longest_word, column))
            for right, column in zip(
                self.right, zip(self.titles, *self.rows, strict=False), strict=True
            )
        ]
        if gaps and sum(least) + gaps > options.max_width:
            yield from self._stack(options.max_width)
        else:
            yield self._draw(narrow=sum(self._widths) + 2 * gaps > options.max_width)

    def _draw(self, narrow: bool) -> Table:
        grid = Table(box=None, pad_edge=False, collapse_padding=narrow)
        for heading, right in zip(self.titles, self.right, strict=True):
            # Numbers are never broken; text is wrapped instead.
            justify: Literal["left", "right"] = "right" if right else "left"
            grid.add_column(heading, justify=justify, overflow="fold", no_wrap=right)
        for row in self.rows:
            grid.add_row(*(Text(escape_controls(cell)) for cell in row))
        return grid

    def _stack(self, room: int) -> RenderResult:
        """Each first cell above the rest of its row."""
        # The widest column gives way until the rest of a row fits; its words are folded then.
        widths = self._widths[1:]
        text = [at for at, right in enumerate(self.right[1:]) if not right] or range(len(widths))
        while 2 * len(widths) + sum(widths) > room and max(widths[at] for at in text) > 1:
            widths[max(text, key=widths.__getitem__)] -= 1
        for row, style in ((self.titles, "bold"), *((row, "") for row in self.rows)):
            yield Text(escape_controls(row[0]), style, overflow="fold")
            rest = Table(box=None, pad_edge=False, show_header=False, padding=(0, 0, 0, 2))
            for width, right in zip(widths, self.right[1:], strict=True):
                rest.add_column(width=width, justify="right" if right else "left", overflow="fold")
            rest.add_row(*(Text(escape_controls(cell), style) for cell in row[1:]))
            yield Padding(rest, (0, 0, 0, 2), expand=False)


_DOCUMENT_TARGETS: set[str] = set()
"""Where this command has written documents."""


def written_to(target: str) -> bool:
    """Whether this command has written a document there."""
    return target in _DOCUMENT_TARGETS


def forget_documents() -> None:
    """Begin a command: nothing is written yet."""
    _DOCUMENT_TARGETS.clear()


def write_json(data: Any, target: str) -> None:
    """Write JSON to a file (atomically), or to standard output for ``-``.

    ``data`` is a model, a dataclass, a list of such, or plain JSON types.
    """
    text = json.dumps(data, indent=2, allow_nan=False, default=_plain) + "\n"
    if target == "-":
        sys.stdout.write(text)
    else:
        write_text(Path(target), text)
    _DOCUMENT_TARGETS.add(target)


def write_document(document: Any, target: str | None) -> bool:
    """Write the document where ``--json`` asks for it; True if the text is printed, too."""
    if target:
        write_json(document, target)
    return target != "-"


def _plain(value: Any) -> Any:
    """A model or a dataclass as JSON types; anything else that JSON does not have, as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    dump = getattr(value, "model_dump", None)
    return str(value) if dump is None else dump(warnings=False)
