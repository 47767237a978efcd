"""``autotune space``: the parameters and levels that can vary with this MPI."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from autotune.cli import completion
from autotune.cli.options import JsonOut, opt
from autotune.cli.requests import ClusterName, Mpi
from autotune.config.cluster import load_cluster
from autotune.document import Document, ParameterValue
from autotune.errors import UsageError
from autotune.files import write_text
from autotune.space import Space, load_space
from autotune.space.check import SpaceFinding, check_file
from autotune.space.definition import KIND
from autotune.space.discover import as_toml, discover, idle_parameters, outranked_parameters
from autotune.targets.startup import transport_in_force
from autotune.terminal.render import print_line, print_table, write_json
from autotune.terminal.spaces import kind_words, levels_words
from runner.files.paths import exists
from runner.machine import describe_machine
from runner.mpi.discover import find_library
from runner.mpi.library import ParamInfo

space = typer.Typer(
    help="List, show, check and write parameter spaces (what may vary).", no_args_is_help=True
)


class SpaceRow(Document):
    """A parameter space and its file."""

    name: str
    file: str


SpaceList = list[SpaceRow]


class ParameterRow(Document):
    """A parameter of a space on one MPI library."""

    name: str
    levels: tuple[ParameterValue, ...]
    default: ParameterValue | None
    target: str


class ShownSpace(Document):
    """A parameter space on one MPI library."""

    name: str
    hash: str
    parameters: list[ParameterRow]
    derived: dict[str, str]
    constraints: list[str]
    absent: dict[str, str]
    """Parameters left out, with the reason."""


class CheckedSpace(Document):
    """What is wrong with a space file, and what is worth knowing."""

    file: str
    ok: bool
    findings: tuple[SpaceFinding, ...]


ParameterList = list[ParamInfo]


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
    known = load_space(name, library=library, facts=facts)
    if json_out:
        write_json(_shown(known), json_out)
        return
    rows = [[p.name, levels_words(p), "-" if p.default is None else str(p.default)] for p in known]
    title = (
        f"{known.name} on {library.family} {library.version}: {known.combinations():.3g} settings"
    )
    print_table(title, ["parameter", "levels", "default"], rows)
    if known.derived:
        print_line("derived values:")
        for derived, expr in known.derived.items():
            print_line(f"  {derived} = {expr}")
    if known.constraints:
        print_line("constraints:")
        for rule in known.constraints:
            print_line(f"  {rule}")
    if known.absent:
        print_line("not available in this MPI library:")
        for missing, why in known.absent.items():
            print_line(f"  {missing}: {why}")


def _shown(known: Space) -> ShownSpace:
    return ShownSpace(
        name=known.name,
        hash=known.hash,
        parameters=[
            ParameterRow(name=p.name, levels=p.levels, default=p.default, target=p.target)
            for p in known
        ],
        derived={derived: str(expr) for derived, expr in known.derived.items()},
        constraints=[str(c) for c in known.constraints],
        absent=dict(known.absent),
    )


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
    if json_out:
        checked = CheckedSpace(file=report.path, ok=report.ok, findings=report.findings)
        write_json(checked, json_out)
    if json_out != "-":
        for finding in report.findings:
            print_line(str(finding))
        count = len(report.space.parameters) if report.space else 0
        words = f"good: {count} parameters" if report.ok else f"{len(report.errors)} to correct"
        print_line(f"{report.path} on {report.library}: {words}")
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
    force: Annotated[bool, opt("--force", "Replace the file if it exists.")] = False,
    everything: Annotated[
        bool,
        opt(
            "--all",
            "List parameters that cannot act too. Without this, two ranks are started to see what "
            "carries the messages.",
        ),
    ] = False,
    cluster: ClusterName = "local",
    mpi: Mpi = None,
    json_out: JsonOut = None,
) -> None:
    """List the parameters of this MPI library that can act on this machine."""
    library = find_library(mpi)
    listed = discover(library, pattern, level)
    transport = (
        "" if everything else transport_in_force(library, load_cluster(cluster).options(library))
    )
    idle = idle_parameters(listed, library, transport)
    below = {} if everything else outranked_parameters(listed, library)
    found = [info for info in listed if info.name not in idle | below]
    if json_out:
        write_json(found, json_out)
    elif out:
        if not found:
            raise UsageError(
                f"no parameter of {library.family} {library.version} matches {pattern!r}",
                code="parameter.unknown",
            )
        if exists(out) and not force:
            raise UsageError(
                f"{out} exists already; --force replaces it, --out FILE names another",
                code="file.exists",
            )
        write_text(out, as_toml(found, library))
        print_line(
            f"wrote {out} with {len(found)} parameters; edit the levels, then run:\n"
            f"  autotune space check {shlex.quote(str(out))}",
            whole=True,
        )
    else:
        rows = [[i.name, i.default, kind_words(i), i.help] for i in found]
        print_table("", ["parameter", "default", "kind", "meaning"], rows)
        print_line(f"{len(found)} parameters")
        if idle:
            print_line(
                f"{len(idle)} parameters are left out: they cannot act, because the messages go "
                f"by {transport} (--all lists them)"
            )
        if below:
            print_line(
                f"{len(below)} parameters of components of collectives are left out: another one "
                f"has a higher priority (--all lists them)"
            )
