"""Messages on standard error: prose in lines of a terminal, and whatever is to be copied whole.

A terminal breaks a long line within a word. So prose is broken between words at the width of the
terminal, at most 80. Command lines, options with their values, quoted words and paths are never
broken: whoever copies them gets what was printed. Into a file or a pipe every line goes as it is.
"""

from __future__ import annotations

import re

WIDTH = 80
_COMMAND = re.compile(
    r"(?<![\w./-])(?:(?:\S*/)?(?:autotune|mpirun|mpiexec|srun|taskset|prterun)|"
    r"(?:sh|pip|chmod|export|env|module|ip) (?=\S))(?=\s+[^\s\[])"
    r"(?:'[^']*'|\"[^\"]*\"|[^'\";,\s]|[;,](?=\S)|[ \t])*"
)
"""A command line in a sentence: to the end of the clause. "autotune [CODE]" begins a message."""
_OPTION = re.compile(r"(?<!\S)\(?--?[A-Za-z][\w-]*(?:[= ](?:'[^']*'|\"[^\"]*\"|[^\s,;.]+))?")
"""An option with its value."""
_QUOTE = re.compile(r"(?<!\w)'[^'\n]*'(?!\w)|\"[^\"\n]*\"|`[^`\n]*`")
_JOIN = "\0"
"""Stands for a blank at which a line is not broken."""


def fold(text: str, width: int) -> str:
    """The text with its prose broken between words, so that its lines have ``width`` columns.

    Lines that begin with a blank are quoted output or commands, and stay. So does a part that is to
    be copied, however long it is.
    """
    room = min(width, WIDTH)
    return "\n".join(
        line if line[:1] in " \t" or len(line) <= room else _fold_line(line, room)
        for line in text.split("\n")
    )


def _fold_line(line: str, room: int) -> str:
    for pattern in (_COMMAND, _OPTION, _QUOTE):
        line = pattern.sub(lambda part: part[0].replace(" ", _JOIN), line)
    rows = [""]
    for word in line.split(" "):
        if rows[-1] and len(rows[-1]) + 1 + len(word) > room:
            rows.append(word)
        else:
            rows[-1] += f" {word}" if rows[-1] else word
    return "\n".join(rows).replace(_JOIN, " ")
