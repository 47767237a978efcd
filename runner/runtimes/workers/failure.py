"""How a failed job reports and ends, if it has several processes."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Any

from runner.errors import RunnerError

_LINE_LIMIT = 8
"""Largest number of waiting tasks that a report names."""


def with_lines(head: str, lines: Sequence[str]) -> str:
    """A report: the head, then the first lines, and the number of further ones."""
    more = [f"  and {len(lines) - _LINE_LIMIT} more"] if len(lines) > _LINE_LIMIT else []
    return "\n".join([head, *(f"  {line}" for line in lines[:_LINE_LIMIT]), *more])


def end_job(comm: Any, runtime: str, error: RunnerError, cause: BaseException) -> None:
    """Raise the error; with several processes print it, with its cause, and end all of them.

    ``comm``: None for a process without MPI. ``cause``: the first exception; its traceback is
    printed, too, unless it is the error itself.
    """
    if cause is not error:
        error.__cause__ = cause
    if comm is None or comm.size == 1:
        raise error
    text = f"{runtime}: process {comm.rank}: {error}\n"
    if cause is not error:
        text += "".join(traceback.format_exception(cause))
    sys.stderr.write(text)
    sys.stderr.flush()
    sys.stdout.flush()
    comm.Abort(getattr(error, "exit_code", 1))
