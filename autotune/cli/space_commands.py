"""``autotune space``: what may vary on this MPI."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from autotune.cli.options import JsonOut, Mpi, opt
from autotune.errors import UsageError
from autotune.files import write_text
from autotune.space import Parameter, Space, load_space
from autotune.space.check import check_file
from autotune.space.discover import as_toml, discover
from autotune.space.load import KIND
from autotune.terminal.render import console, table, write_json
from runner.machine import describe
from runner.mpi.discover import find
from runner.mpi.library import ParamInfo

space = typer.Typer(help="Parameter spaces: what may vary.", no_args_is_help=True)
ENUM_SHOWN = 60


@space.command("list")
def list_spaces(json_out: JsonOut = None) -> None:
    """List the spaces and where they come from."""
    from autotune.config.find import listing

    files = listing(KIND)
    if json_out:
        write_json([{"name": f.name, "file": f.path} for f in files], json_out)
        return
    console().print(table("", ["space", "file"], [[f.name, f.path] for f in files]))


@space.command("show")
def show(
    name: Annotated[str, typer.Argument(help="A space; several joined by +.")],
    ranks: Annotated[int, opt("--ranks -n", "For conditions.", min=1)] = 2,
    mpi: Mpi = None,
    json_out: JsonOut = None,
) -> None:
    """Show the parameters and levels of a space on this MPI."""
    library = find(mpi)
    facts = {"ranks": ranks, "cores": describe().cores, "nodes": 1}
    known = load_space(name, library=library, facts=facts)
    if json_out:
        write_json(_space_json(known), json_out)
        return
    out = console()
    rows = [[p.name, _levels(p), "-" if p.default is None else str(p.default)] for p in known]
    title = (
        f"{known.name} on {library.family} {library.version}: {known.combinations():.3g} settings"
    )
    out.print(table(title, ["parameter", "levels", "default"], rows))
    if known.derived:
        out.print("what follows:", markup=False)
        for derived, expr in known.derived.items():
            out.print(f"  {derived} = {expr}", markup=False)
    if known.constraints:
        out.print("constraints:", markup=False)
        for rule in known.constraints:
            out.print(f"  {rule}", markup=False)
    if known.absent:
        out.print("not in this MPI:", markup=False)
        for missing, why in known.absent.items():
            out.print(f"  {missing}: {why}", markup=False)


def _levels(parameter: Parameter) -> str:
    return " ".join(str(level) for level in parameter.levels)


def _space_json(known: Space) -> dict[str, Any]:
    return {
        "name": known.name,
        "hash": known.hash,
        "parameters": [
            {"name": p.name, "levels": list(p.levels), "default": p.default, "target": p.target}
            for p in known
        ],
        "derived": {derived: str(expr) for derived, expr in known.derived.items()},
        "constraints": [str(c) for c in known.constraints],
        "absent": dict(known.absent),
    }


@space.command("check")
def check(
    file: Annotated[str, typer.Argument(help="A space file, or the name of a space.")],
    mpi: Mpi = None,
    json_out: JsonOut = None,
) -> None:
    """Compare a space with this MPI: names it does not have, values it does not know."""
    report = check_file(file, find(mpi))
    if json_out:
        findings = [vars(f) for f in report.findings]
        write_json({"file": report.path, "ok": report.ok, "findings": findings}, json_out)
    if json_out != "-":
        out = console()
        for finding in report.findings:
            out.print(str(finding), markup=False)
        count = len(report.space.parameters) if report.space else 0
        words = f"good: {count} parameters" if report.ok else f"{len(report.errors)} to mend"
        out.print(f"{report.path} on {report.library}: {words}", markup=False)
    if not report.ok:
        raise typer.Exit(2)


@space.command("discover")
def discover_parameters(
    pattern: Annotated[
        str | None, typer.Argument(help="Part of a name, or a glob such as 'btl_sm_*'.")
    ] = None,
    level: Annotated[int, opt("--level", "Open MPI's own grade; 9 is all.", min=1, max=9)] = 9,
    out: Annotated[Path | None, opt("-o --out FILE", "Write a space file to start from.")] = None,
    force: Annotated[bool, opt("--force", "Replace an existing file.")] = False,
    mpi: Mpi = None,
    json_out: JsonOut = None,
) -> None:
    """List the parameters that this MPI has."""
    library = find(mpi)
    found = discover(library, pattern, level)
    if json_out:
        write_json([vars(info) for info in found], json_out)
    elif out:
        if not found:
            raise UsageError(f"no parameter of {library.family} {library.version} fits {pattern!r}")
        if out.exists() and not force:
            raise UsageError(f"{out} exists; --force replaces it")
        write_text(out, as_toml(found, library))
        console().print(f"wrote {out} with {len(found)} parameters; edit the levels, then:\n"
                        f"  autotune space check {out}", markup=False)  # fmt: skip
    else:
        rows = [[i.name, i.default, _kind(i), i.help] for i in found]
        console().print(table("", ["parameter", "default", "kind", "meaning"], rows))
        console().print(f"{len(found)} parameters", markup=False)


def _kind(info: ParamInfo) -> str:
    names = " ".join(info.enum.values())
    return names if info.enum and len(names) <= ENUM_SHOWN else info.type
