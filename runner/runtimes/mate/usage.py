"""Errors in the start of a program of a runtime (MATE, Tarragon, TPOD): each is printed once.

All processes have the same command line, so all find the same error.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from runner.errors import RunnerError
from runner.runtimes.mate.errors import ConfigError, MateError
from runner.runtimes.mate.report import PATIENCE_S, is_first

_LOOK_S = 1e-3


class HelpAsked(MateError):
    """The text that a parser prints for ``--help``."""

    exit_code = 0


def parse_args(
    parser: argparse.ArgumentParser, words: Sequence[str] | None = None
) -> argparse.Namespace:
    """The arguments, as ``parser.parse_args(words)`` gives them; nothing is printed.

    Raises :class:`ConfigError` for a wrong command line, and :class:`HelpAsked` if the parser would
    print a text and end. Both are for :func:`errors_once`.
    """
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            return parser.parse_args(words)
    except SystemExit as end:
        if not end.code:
            raise HelpAsked(out.getvalue().rstrip(), code="mate.help") from None
        usage, _, message = err.getvalue().partition(": error: ")
        raise ConfigError(
            f"{(message or usage).strip()} (--help lists the options)", code="mate.option"
        ) from None


@contextlib.contextmanager
def errors_once(name: str) -> Iterator[None]:
    """End the program for a :class:`RunnerError` of the block, which one process prints.

    The message follows ``name``. The exit code is that of the error: 2 for a wrong option or
    configuration, else 1. If only some processes find the error, all are ended.
    """
    try:
        yield
    except RunnerError as error:
        end_with(name, error)


def end_with(name: str, error: RunnerError) -> NoReturn:
    """Print the error, if this is the lowest process that has found it, and end the process."""
    comm = _world()
    if comm is None or is_first(comm, str(error)):
        if isinstance(error, HelpAsked):
            print(error, flush=True)
        else:
            print(f"{name}: {error}", file=sys.stderr, flush=True)
    code = getattr(error, "exit_code", 1)
    if comm is not None:
        _leave(comm, code)
    sys.exit(code)


def _world() -> Any:
    """The communicator of all processes; None for a program without MPI, or after MPI's end."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError):
        return None
    return None if MPI.Is_finalized() or not MPI.Is_initialized() else MPI.COMM_WORLD


def _leave(comm: Any, code: int) -> None:
    """Wait until all processes are here, or end them if they do not come.

    The launcher ends the others when the first one ends with an error; by then none may have to
    print.
    """
    request = comm.Ibarrier()
    # The others wait equally long for a lower process with the same error.
    end = time.monotonic() + 2 * PATIENCE_S
    while not request.Test():
        if time.monotonic() >= end:
            comm.Abort(code)
        time.sleep(_LOOK_S)
