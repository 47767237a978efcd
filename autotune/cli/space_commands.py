"""``autotune space``: the parameters and levels that can vary with this MPI."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from autotune.api.spaces import SpaceRow, active_parameters, checked_space, shown_space
from autotune.cli import completion
from autotune.cli.options import Force, JsonOut, opt, refuse_existing
from autotune.cli.requests import ClusterName, Mpi
from autotune.errors import UsageError
from autotune.files import write_text
from autotune.space import load_space
from autotune.space.check import check_file
from autotune.space.definition import KIND
from autotune.space.discover import as_toml
from autotune.terminal.render import print_line, print_table, write_document, write_json
from autotune.terminal.spaces import print_check, print_parameters, print_space
from runner.machine import describe_machine
from runner.mpi.discover import find_library

space = typer.Typer(
    help="List, show, check and write parameter spaces (what may vary).", no_args_is_help=True
)


@space.command("list")
def list_spaces(json_out: JsonOut = None) -> None:
    """List the spaces and where they come from."""
    from autotune.config.find import list_configs

    files = list_configs(KIND)
    if json_out:
        write_json([SpaceRow(name=f.name, file=f.path) for f in files], json_out)
        return
    print_table("", ["space", "file"], [[f.name, f.path] for f in files])


@space.command("show")
def show(
    name: Annotated[
        str,
        typer.Argument(
            help="Name of a space; join several with +.", autocompletion=completion.spaces
        ),
    ],
    ranks: Annotated[
        int,
        opt(
            "--ranks -n N", "Number of ranks for which the space's conditions are evaluated.", min=1
        ),
    ] = 2,
    mpi: Mpi = None,
    json_out: JsonOut = None,
) -> None:
    """Show the parameters and levels of a space on this MPI."""
    library = find_library(mpi)
    facts = {"ranks": ranks, "cores": describe_machine().cores, "nodes": 1}
    parameter_space = load_space(name, library=library, facts=facts)
    if json_out:
        write_json(shown_space(parameter_space), json_out)
    else:
        print_space(parameter_space, library)


@space.command("check")
def check(
    file: Annotated[
        str,
        typer.Argument(help="Space file, or name of a space.", autocompletion=completion.spaces),
    ],
    mpi: Mpi = None,
    json_out: JsonOut = None,
) -> None:
    """Check a space against this MPI: parameters and values that the MPI does not know."""
    report = check_file(file, find_library(mpi))
    if write_document(checked_space(report), json_out):
        print_check(report)
    if not report.ok:
        raise typer.Exit(2)


@space.command("discover")
def discover_parameters(
    pattern: Annotated[
        str | None,
        typer.Argument(
            help="Part of a parameter's name, or a glob such as 'btl_sm_*'. Default: all."
        ),
    ] = None,
    level: Annotated[
        int,
        opt(
            "--level N",
            "Highest level of Open MPI's grading to list (1: basic user, 9: developer).",
            min=1,
            max=9,
        ),
    ] = 9,
    out: Annotated[
        Path | None,
        opt("-o --out FILE", "Write the parameters found to this file, as a space to edit."),
    ] = None,
    force: Force = False,
    everything: Annotated[
        bool,
        opt(
            "--all",
            "List also parameters that cannot act. Without this option two ranks are started to "
            "find the transport in use.",
        ),
    ] = False,
    cluster: ClusterName = "local",
    mpi: Mpi = None,
    json_out: JsonOut = None,
) -> None:
    """List the parameters of this MPI library that can act on this machine."""
    library = find_library(mpi)
    active = active_parameters(library, pattern, level, None if everything else cluster)
    parameters = active.parameters
    if out:
        if not parameters:
            raise UsageError(
                f"no parameter of {library.family} {library.version} matches {pattern!r}",
                code="parameter.unknown",
            )
        refuse_existing(out, force, "--out FILE")
        write_text(out, as_toml(parameters, library))
    is_printed = write_document(parameters, json_out)
    if out and is_printed:
        print_line(
            f"wrote {out} with {len(parameters)} parameters; edit the levels, then run:\n"
            f"  autotune space check {shlex.quote(str(out))}",
            whole=True,
        )
    elif is_printed and not json_out:
        print_parameters(active)
