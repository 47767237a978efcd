"""The target grammar as command-line options, said once for every command that measures."""

from __future__ import annotations

from typing import Annotated

import typer

from runner.types import MetricChoice

TARGET = "Target"
Program = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- PROGRAM ARGS]", help="Any MPI program, instead of --app.", show_default=False
    ),
]
AppName = Annotated[
    str | None,
    typer.Option(
        "--app", metavar="NAME", help="A known application (autotune apps).", rich_help_panel=TARGET
    ),
]
InputName = Annotated[
    str | None,
    typer.Option(
        "--input", metavar="I", help="Which input of the application.", rich_help_panel=TARGET
    ),
]
Ranks = Annotated[
    int | None,
    typer.Option(
        "--ranks",
        "-n",
        metavar="N",
        min=1,
        help="MPI processes; with workers in the space: cores in all.",
        rich_help_panel=TARGET,
    ),
]
ClusterName = Annotated[
    str,
    typer.Option(
        "--cluster",
        metavar="C",
        help="Where it runs (autotune cluster list).",
        rich_help_panel=TARGET,
    ),
]
Mpi = Annotated[
    str | None,
    typer.Option(
        "--mpi",
        metavar="P",
        rich_help_panel=TARGET,
        help="Which MPI: openmpi-5.0, mpich, or a directory. Default: the first found.",
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="RE",
        rich_help_panel=TARGET,
        help="Regular expression with one group (seconds), or json:KEY. Default: wall time.",
    ),
]
Verify = Annotated[
    str | None,
    typer.Option(
        "--verify",
        metavar="RE",
        rich_help_panel=TARGET,
        help="Regular expression that the output of a right run contains, or json:KEY.",
    ),
]
Choice = Annotated[
    MetricChoice | None,
    typer.Option(
        "--metric-choice",
        rich_help_panel=TARGET,
        help="Which figure counts where --metric is found several times in one run. Default: max.",
    ),
]
Stdin = Annotated[
    str | None,
    typer.Option(
        "--stdin",
        metavar="FILE",
        rich_help_panel=TARGET,
        help="What rank 0 reads from its standard input. Default: nothing.",
    ),
]
Timeout = Annotated[
    str | None,
    typer.Option(
        "--timeout",
        metavar="TIME",
        rich_help_panel=TARGET,
        help="Longest run: seconds, or 90s, 10m, 2h.",
    ),
]
CleanEnv = Annotated[
    bool,
    typer.Option(
        "--clean-env",
        rich_help_panel=TARGET,
        help="Remove inherited MPI settings (variables, parameter files).",
    ),
]
StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="URL", help="Results database (path or URL).", envvar="AUTOTUNE_STORE"
    ),
]
JsonOut = Annotated[
    str | None,
    typer.Option(
        "--json", metavar="FILE|-", help="Write the result as JSON ('-': standard output)."
    ),
]
Budget = Annotated[
    str | None,
    typer.Option("--budget", metavar="TIME", help="Machine time for all of it: 90s, 10m, 2h."),
]
MaxRuns = Annotated[
    int | None,
    typer.Option("--runs", metavar="N", min=1, help="Launches for all of it, rejected ones too."),
]
Guard = Annotated[
    bool,
    typer.Option(
        "--guard/--no-guard", help="Reject runs during which other processes used the machine."
    ),
]
