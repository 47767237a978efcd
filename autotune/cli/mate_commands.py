"""``autotune mate``: programs of the over-decomposing runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.options import opt
from autotune.errors import UsageError
from autotune.files import write_text
from autotune.terminal.render import console

mate = typer.Typer(
    help="Programs of the MATE runtime (runner/mate/README.md).", no_args_is_help=True
)


@mate.command("translate")
def translate(
    program: Annotated[
        Path, typer.Argument(metavar="APP.py", help="An mpi4py program with #pragma mate lines.")
    ],
    out: Annotated[Path | None, opt("-o --out FILE", "Default: APP_mate.py beside it.")] = None,
    force: Annotated[bool, opt("--force", "Replace an existing file.")] = False,
) -> None:
    """Turn an annotated mpi4py program into one of the runtime.

    Functions on the way to a blocking call become coroutines, annotated loops become graphs of
    regions.  What cannot be translated is an error with its line.
    """
    # libcst takes a while to import.
    from runner.mate.translate import TranslationError
    from runner.mate.translate import translate as translated

    try:
        text = program.read_text(encoding="utf-8")
    except OSError as problem:
        raise UsageError(f"cannot read {program}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"cannot read {program}: it is no text in UTF-8") from None
    place = out or program.with_name(f"{program.stem}_mate.py")
    if place.exists() and place.samefile(program):
        raise UsageError(f"{place} is the program itself: name another file with --out")
    if place.exists() and not force:
        raise UsageError(f"{place} exists; --force replaces it")
    try:
        made = translated(text, str(program))
    except TranslationError as problem:
        raise UsageError(str(problem)) from None
    write_text(place, made)
    words = f"mpirun -n 1 python {place} ARGUMENTS --workers 2 --ranks-per-process 4"
    console().print(f"wrote {place}; run it:\n  {words}", markup=False, soft_wrap=True)
