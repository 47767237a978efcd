"""The standard streams of the command, whatever the caller made of them.

Closed: nothing is printed, and no file that is opened later becomes standard output. A full disk,
or a terminal that has gone: standard output ends the command with a message, standard error loses
what cannot be written. An encoding without a character: it is printed as an escape.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from autotune.errors import UsageError, WorkError

_NAMES = ("stdin", "stdout", "stderr")


class _Output(io.FileIO):
    """Standard output: what cannot be written is the command's failure."""

    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except BrokenPipeError:
            raise
        except OSError as problem:
            raise WorkError(
                f"standard output cannot be written: {problem.strerror}; what a study has measured "
                "is stored. Give the command again with its output elsewhere",
                code="output.unwritable",
            ) from None


class _Errors(io.FileIO):
    """Standard error: what cannot be written is lost, for no message is worth a run."""

    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError:
            return len(data)  # type: ignore[arg-type]


def open_streams() -> frozenset[str]:
    """Make the three standard streams usable; returns the names of those that were closed."""
    closed_names = frozenset(name for name in _NAMES if getattr(sys, name) is None)
    for number, name in enumerate(_NAMES):
        if name in closed_names:
            _hold(number)
    if "stdin" in closed_names:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115 (for all its life)
    sys.stdout = _stream(_Output, 1, sys.stdout)
    sys.stderr = _stream(_Errors, 2, sys.stderr)
    return closed_names


def refuse_closed_output(closed_names: frozenset[str], arguments: Sequence[str]) -> None:
    """Raise UsageError if a document is asked for on a standard output that is closed."""
    from autotune.terminal.command_line import value_of

    if "stdout" in closed_names and value_of("--json", arguments) == "-":
        raise UsageError(
            "--json - writes to standard output, which is closed; name a file: --json FILE",
            code="output.closed",
        )


def _hold(number: int) -> None:
    """Open the null device under this number, unless a file of this process has it already."""
    with contextlib.suppress(OSError):
        os.fstat(number)
        return
    null = os.open(os.devnull, os.O_RDWR)
    if null != number:
        os.dup2(null, number)
        os.close(null)
    os.set_inheritable(number, True)


def _stream(kind: type[io.FileIO], number: int, before: TextIO | None) -> TextIO:
    if before is None:  # Another file of this process may have the number.
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 (for all its life)
    before.flush()
    raw = kind(number, "wb", closefd=False)
    # Each text at once to a terminal and to standard error, as the interpreter does.
    line_buffering = number == 2 or raw.isatty()
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=before.encoding,
        errors="backslashreplace",
        line_buffering=line_buffering,
    )
