"""``autotune mate``: for programs of MATE, the over-decomposing runtime: translates and checks."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from autotune.api.requests import GraphCheckRequest
from autotune.cli.mate_timeline import timeline
from autotune.cli.options import Force, JsonOut, opt, refuse_existing
from autotune.cli.requests import takes_request
from autotune.errors import UsageError
from autotune.files import write_text
from autotune.terminal.render import print_line, write_document
from runner import files
from runner.files.paths import exists

_LARGEST = 16 * files.MIB
"""Of a program's source."""
mate = typer.Typer(
    help="Translate and check programs of the MATE runtime (see runner/runtimes/mate/README.md).",
    no_args_is_help=True,
)


@mate.command("translate")
def translate(
    program: Annotated[
        Path,
        typer.Argument(
            metavar="APP.py", help="mpi4py program that is annotated with #pragma mate lines."
        ),
    ],
    out: Annotated[
        Path | None,
        opt(
            "-o --out FILE",
            "File for the translated program. Default: APP_mate.py beside the program.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Translate an annotated mpi4py program into a program of the MATE runtime.

    Functions that lead to a blocking call become coroutines; annotated loops become graphs of
    regions.  A construct that cannot be translated is reported with its line.  Regions that can be
    compiled become functions of the module; for each other region a line says why it stays Python.
    """
    # The import of libcst takes a while.
    from runner.runtimes.mate.translate import TranslationError, translation

    try:
        text = files.read_user_file(program, _LARGEST)
    except OSError as problem:
        raise UsageError(
            f"cannot read {program}: {problem.strerror}", code="program.unreadable"
        ) from None
    except UnicodeDecodeError:
        raise UsageError(
            f"cannot read {program}: it is not UTF-8 text; expected a Python program",
            code="program.unreadable",
        ) from None
    place = out or program.with_name(f"{program.stem}_mate.py")
    if exists(place) and place.samefile(program):
        raise UsageError(
            f"{place} is the program itself; name another file with --out", code="file.same"
        )
    refuse_existing(place, force, "--out FILE")
    try:
        output = translation(text, str(program))
    except TranslationError as problem:
        raise UsageError(str(problem), code=problem.code) from None
    write_text(place, output.text)
    for region in output.regions:
        if region.reason:
            sys.stderr.write(f"{region}\n")
    # Open MPI binds a rank to one core, where there is no place for two workers.
    words = (
        f"mpirun -n 1 --bind-to none python {shlex.quote(str(place))} ARGUMENTS "
        "--workers 2 --ranks-per-process 4"
    )
    print_line(f"wrote {place}; to run it:\n  {words}", whole=True)
    if output.regions:
        compilable = sum(not region.reason for region in output.regions)
        count = f"{compilable} of {len(output.regions)} regions can be compiled"
        print_line(count, whole=True)


@mate.command("check")
@partial(takes_request, name="mate check")
def check(request: GraphCheckRequest, json_out: JsonOut = None) -> None:
    """Check the dependencies of a program's graphs against what its regions read and write.

    The program runs once for each schedule, with its regions in Python, which takes far longer than
    usual: take few cells and few iterations.  A dependency that is missing is named with both
    regions and the memory that they share, one that no conflict needs as superfluous.  Exit code 1
    if there is any.
    """
    from autotune.api.graph_check import check_graphs
    from autotune.api.target import find_target, to_stderr
    from autotune.space import DEFAULT
    from autotune.terminal.graph_check import print_graph_check

    target = find_target(request.target)
    space, setting = None, DEFAULT
    if request.setting != "default" or request.space:
        # The database's library need not be imported otherwise.
        from autotune.store import Store
        from autotune.targets.setting_syntax import read_settings

        with Store.open(None) as database:
            space, [setting] = read_settings(
                [request.setting], target.space(request.space), target.library, database
            )
    answer = check_graphs(target, space, setting, request.schedules, to_stderr)
    if write_document(answer, json_out):
        print_graph_check(answer)
    if answer.findings:
        raise typer.Exit(1)


mate.command("timeline")(timeline)
