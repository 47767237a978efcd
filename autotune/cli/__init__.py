"""The command line ``autotune COMMAND``: what all commands share."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import typer

INTERRUPT_CODE = 130


def main(arguments: list[str] | None = None, closed_streams: frozenset[str] = frozenset()) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted.

    User errors are printed as one message on standard error, never as a traceback.
    ``closed_streams``: the standard streams that the caller closed.
    """
    try:
        return _run(sys.argv[1:] if arguments is None else arguments, closed_streams)
    except KeyboardInterrupt:
        # Commands that can be continued have printed how; stopping loses nothing else.
        return INTERRUPT_CODE


def _run(arguments: list[str], closed_streams: frozenset[str]) -> int:
    # The imports are here, so that an interrupt while they are loading is handled, too.
    import typer

    from autotune.cli.commands import build
    from autotune.cli.options import refuse_several_libraries
    from autotune.cli.streams import refuse_closed_output
    from autotune.errors import AutotuneError
    from autotune.extras import missing_extra
    from autotune.terminal.command_line import remember_command
    from autotune.terminal.render import forget_documents
    from runner.errors import RunnerError, RunnerUsageError

    _give_home()
    remember_command(arguments)
    forget_documents()
    _tell_of_password(arguments)
    try:
        refuse_closed_output(closed_streams, arguments)
        refuse_several_libraries(next(iter(arguments), ""))
        with _interrupt_on_termination(), repeat_lost_interrupts():
            code = build()(args=arguments, prog_name="autotune", standalone_mode=False)
            sys.stdout.flush()  # What cannot be written shows now, while it can be told.
        return code if isinstance(code, int) else 0
    except typer.Exit as stop:
        return stop.exit_code
    except typer.TyperException as error:
        return _report_parser_error(arguments, error)
    except typer.Abort:
        return INTERRUPT_CODE
    except AutotuneError as error:
        return _report_error(arguments, str(error), error.code, error.exit_code)
    except RunnerError as error:
        code = 2 if isinstance(error, RunnerUsageError) else 1
        return _report_error(arguments, str(error), error.code, code)
    except ModuleNotFoundError as error:
        words = missing_extra(error, next(iter(arguments), ""))
        if words is None:
            raise
        return _report_error(arguments, words, "install.extra", 2)
    except BrokenPipeError:
        # The reader of the output has closed it (autotune ... | head): that is no error.
        sys.stderr.close()
        return 0


def _tell_of_password(arguments: Sequence[str]) -> None:
    """Say that other users see a password on the command line; with --quiet nothing."""
    from autotune.terminal.command_line import shows_password
    from autotune.terminal.render import error_console, note_line

    if shows_password() and not {"--quiet", "-q"} & set(arguments):
        words = (
            "the command line has the password of a database, and every user of this machine can "
            "see it; put the URL in AUTOTUNE_STORE, or the password in ~/.pgpass. Where autotune "
            "prints a command to copy, *** stands for it"
        )
        error_console().print(note_line("store.password", words), markup=False)


def _report_parser_error(arguments: Sequence[str], error: typer.TyperException) -> int:
    """Print an error of the parser, with the command's line of usage; a command without arguments
    that needs some prints its help."""
    context: Any = getattr(error, "ctx", None)
    message = error.format_message()
    if context is not None and message == context.get_help():
        print(message, file=sys.stderr)
        return 2
    usage = ""
    if context is not None:
        usage = f"\n{context.get_usage()}\nFor help:  {context.command_path} --help"
    return _report_error(arguments, message, "usage.option", 2, usage)


def _report_error(
    arguments: Sequence[str], message: str, code: str, exit_code: int, usage: str = ""
) -> int:
    """Print an error with its code, and as a document, without ``usage``, where --json asks for
    one."""
    from autotune.terminal.render import error_console
    from runner.files.closed_output import drop_output
    from runner.passwords import mask_password

    if code == "output.unwritable":
        drop_output()
    message = mask_password(message)
    error_console().print(f"autotune [{code}]: {message}{usage}", markup=False, highlight=False)
    _document(arguments, message, code, exit_code)
    return exit_code


def _document(arguments: Sequence[str], message: str, code: str, exit_code: int) -> None:
    """Write the error as JSON to where ``--json`` of this command points, if it is there."""
    from autotune.errors import AutotuneError
    from autotune.terminal.command_line import value_of
    from autotune.terminal.render import write_json, written_to

    target = value_of("--json", arguments)
    if target is None or written_to(target):  # The document of a part that succeeded stays.
        return
    from autotune.document import ErrorDocument

    document = ErrorDocument.model_validate(
        {"code": code, "message": message, "exit_code": exit_code}
    )
    with suppress(AutotuneError, OSError):  # The error itself may be that this file is wrong.
        write_json(document, target)


def _give_home() -> None:
    """Set HOME if it is missing, as in systemd and some crons: Open MPI does not start without."""
    if "HOME" not in os.environ:
        with suppress(RuntimeError):  # The user may have no entry in the user database.
            os.environ["HOME"] = str(Path.home())


@contextmanager
def _interrupt_on_termination() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP as Ctrl-C, unless they are ignored (nohup): nothing must be lost.

    A batch system ends a job with SIGTERM; a terminal that is closed sends SIGHUP.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {}
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            before[number] = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def repeat_lost_interrupts() -> Iterator[None]:
    """Send a Ctrl-C again that Python dropped.

    A KeyboardInterrupt in a finalizer or in the callback of a weak reference is only reported: the
    search would go on.
    """
    before = sys.unraisablehook
    main_thread = threading.main_thread().ident

    def resend(unraisable: sys.UnraisableHookArgs) -> None:
        if main_thread is None or not issubclass(unraisable.exc_type, KeyboardInterrupt):
            before(unraisable)
            return
        # Later, because within this function it would be dropped again.
        # In the background of a shell it is ignored.
        is_ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        number = signal.SIGTERM if is_ignored else signal.SIGINT
        timer = threading.Timer(0.05, signal.pthread_kill, (main_thread, number))
        timer.daemon = True
        timer.start()

    sys.unraisablehook = resend
    try:
        yield
    finally:
        sys.unraisablehook = before


def entry() -> None:
    """The installed command."""
    from autotune.cli.streams import open_streams

    # Most of what a command makes is imported and stays: a quarter of the time of a short command
    # was a search for garbage among it, at the start and, without freeze(), at the end.
    gc.set_threshold(200_000, 20, 100)
    code = main(closed_streams=open_streams())
    gc.freeze()
    # Under -m, Python would die of SIGINT, whatever the exit code, if the interrupt came while it
    # executed a string (libraries do when they are imported); the next string clears the mark.
    exec("")
    sys.exit(code)
