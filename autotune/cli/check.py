"""``autotune check``: what is wrong with a launch line, and the right one."""

from __future__ import annotations

from typing import Annotated

import typer

from autotune.cli.options import JsonOut, opt
from autotune.terminal.render import write_document


def check(
    line: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[--] LINE",
            help="Launch line (mpirun, mpiexec, mpiexec.hydra, prterun, srun, perhaps behind "
            "variables and wrappers), or a batch script, whose launch lines are read.",
            show_default=False,
        ),
    ] = None,
    dry: Annotated[
        bool | None,
        opt(
            "--dry/--run",
            "Run a probe in the program's place, or the program itself. Default: the program, "
            "unless its arguments name files that it could write.",
        ),
    ] = None,
    timeout: Annotated[
        str, opt("--timeout TIME", "Longest run of the program: 90, 90s, 10m or 2h.")
    ] = "60s",
    why: Annotated[
        str | None, opt("--why CODE", "Explain one kind of finding, and check nothing.")
    ] = None,
    json_out: JsonOut = None,
) -> None:
    """Say what is wrong with a launch line, why it costs time, and give the right line.

    Exit code 1 if a finding is of the two gravest classes: wrong, or more than twice the time.
    """
    from autotune.api.launch_check import check as check_line
    from autotune.api.launch_check import explain_finding
    from autotune.errors import UsageError
    from autotune.terminal.launch_check import print_check, print_explanation
    from autotune.wording import parse_duration

    if why is not None:
        explained = explain_finding(why)
        if write_document(explained, json_out):
            print_explanation(explained)
        return
    if not line:
        raise UsageError(
            "no launch line given; expected autotune check -- mpirun -n 4 ./a.out",
            code="check.no_launcher",
        )
    result = check_line(line, dry=dry, timeout_s=parse_duration(timeout, "--timeout "))
    if write_document(result, json_out):
        print_check(result)
    if result.is_grave:
        raise typer.Exit(1)


check.context_settings = {"allow_interspersed_args": False}  # type: ignore[attr-defined]
