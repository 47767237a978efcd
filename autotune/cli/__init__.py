"""The command line: ``autotune COMMAND``.  Here is only what all commands share."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted.

    User errors are printed as one message on standard error, never as a traceback.
    """
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        # Commands that can be continued have said how; nothing else is lost by stopping.
        return INTERRUPTED


def _run(arguments: list[str]) -> int:
    # Imported here: an interrupt that comes while they are loaded is one like any other.
    import typer

    from autotune.cli.commands import build
    from autotune.errors import AutotuneError
    from autotune.terminal.render import error_console, remember_command
    from runner.errors import RunnerError, RunnerUsageError

    _give_home()
    remember_command(arguments)
    try:
        with _terminated_like_interrupted():
            code = build()(args=arguments, prog_name="autotune", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except typer.Exit as stop:
        return stop.exit_code
    except typer.TyperException as error:
        _show(error)
        return 2
    except typer.Abort:
        return INTERRUPTED
    except AutotuneError as error:
        error_console().print(f"autotune: {error}", markup=False, highlight=False)
        return error.exit_code
    except RunnerError as error:
        error_console().print(f"autotune: {error}", markup=False, highlight=False)
        return 2 if isinstance(error, RunnerUsageError) else 1
    except BrokenPipeError:
        # The reader of our output went away (autotune ... | head): not an error of ours.
        sys.stderr.close()
        return 0


def _give_home() -> None:
    """Open MPI does not start without HOME, which systemd and some crons leave out."""
    if "HOME" not in os.environ:
        with suppress(RuntimeError):  # A user without an entry among the users.
            os.environ["HOME"] = str(Path.home())


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """A batch system ends a job with SIGTERM: treat it as Ctrl-C, so that nothing is lost."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _show(error: Exception) -> None:
    """A usage error with the command's usage line where there is one."""
    show = getattr(error, "show", None)
    if callable(show):
        show()
    else:
        print(f"autotune: {error}", file=sys.stderr)


def entry() -> None:
    """The installed command."""
    sys.exit(main())
