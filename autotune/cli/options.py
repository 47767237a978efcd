"""The options of targets, defined once for all commands that measure."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

from autotune.cli import completion
from autotune.errors import UsageError
from autotune.terminal.command_line import values_given
from runner.types import MetricChoice


def opt(said: str, help: str, panel: str | None = None, **more: Any) -> Any:
    """One option, written as its help shows it: ``"--budget TIME"``, ``"--ranks -n N"``,
    ``"--join"``.

    ``panel`` is the heading under which the help lists it; ``more`` goes to :class:`typer.Option`.
    """
    words = said.split()
    names = [word for word in words if word.startswith("-")]
    value = " ".join(words[len(names) :]) or None
    return typer.Option(*names, metavar=value, help=help, rich_help_panel=panel, **more)


SEVERAL_LIBRARIES = ("search", "compare")
"""The commands that take more than one ``--mpi``."""


def refuse_several_libraries(command: str) -> None:
    """Raise UsageError if the command line names several MPI libraries for a command of one.

    Without this, the last name would count and the others would be ignored.
    """
    named = values_given("--mpi")
    if len(named) > 1 and command not in SEVERAL_LIBRARIES:
        raise UsageError(
            f"--mpi was given {len(named)} times ({', '.join(named)}), and autotune {command} "
            "works with one MPI library; autotune search and autotune compare take several",
            code="usage.several_libraries",
        )


TARGET = "Target"
Program = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- PROGRAM ARGS]",
        help="MPI program and its arguments after --, for example -- ./a.out 100. In place "
        "of --app.",
        show_default=False,
    ),
]
AppName = Annotated[
    str | None,
    opt(
        "--app NAME",
        "Application known by name (autotune apps lists them).",
        TARGET,
        autocompletion=completion.apps,
    ),
]
InputName = Annotated[
    str | None,
    opt(
        "--input I",
        "Input of the application, by name. Default: its usual input.",
        TARGET,
        autocompletion=completion.inputs,
    ),
]
Ranks = Annotated[
    int | None,
    opt(
        "--ranks -n N",
        "Number of MPI processes. If the space varies ranks, threads or workers: "
        "number of cores. Default: that of --app.",
        TARGET,
        min=1,
    ),
]
ClusterName = Annotated[
    str,
    opt(
        "--cluster C",
        "Cluster definition: nodes, launch options (autotune cluster list).",
        TARGET,
        autocompletion=completion.clusters,
    ),
]
Mpi = Annotated[
    str | None,
    opt(
        "--mpi P",
        "MPI library: family and version (openmpi-5.0, mpich) or installation "
        "directory. Default: the first found.",
        TARGET,
    ),
]
Libraries = Annotated[
    list[str] | None,
    opt(
        "--mpi P",
        "MPI library: family and version (openmpi-5.0, mpich) or installation "
        "directory. Default: the first found. Given several times: the library is a parameter "
        "of the search, and the first one is that of the default.",
        TARGET,
    ),
]
SpaceName = Annotated[
    str | None,
    opt(
        "--space NAME|FILE",
        "Parameter space that the setting is checked against. Default: that of the MPI library.",
        autocompletion=completion.spaces,
    ),
]
Metric = Annotated[
    str | None,
    opt(
        "--metric RE",
        "Time that the program prints: regular expression with one group around the number, "
        "such as 'Time *= *(\\S+)', or json:KEY. Default: that of --app, else wall time.",
        TARGET,
    ),
]
Rate = Annotated[
    str | None,
    opt(
        "--metric-rate RE",
        "Rate that the program prints (GB/s, ns/day), as --metric; a larger one is better.",
        TARGET,
    ),
]
Verify = Annotated[
    str | None,
    opt(
        "--verify RE",
        "Check of the result: regular expression that the output has to contain, or "
        "json:KEY. Default: that of --app, else exit code 0 only.",
        TARGET,
    ),
]
VerifyAbsent = Annotated[
    str | None,
    opt(
        "--verify-absent RE",
        "Regular expression that the output must not contain, such as FAILED.",
        TARGET,
    ),
]
ExitCodes = Annotated[
    str | None,
    opt(
        "--exit-codes LIST",
        "Exit codes of a run in which nothing failed, with commas. Default: that of --app, else 0.",
        TARGET,
    ),
]
Choice = Annotated[
    MetricChoice | None,
    opt(
        "--metric-choice",
        "Value to use if the program prints its figure several times in one run. Default: that "
        "of --app, else max of times and min of rates.",
        TARGET,
    ),
]
Stdin = Annotated[
    str | None,
    opt("--stdin FILE", "File for the standard input of rank 0. Default: empty input.", TARGET),
]
Before = Annotated[
    str | None,
    opt(
        "--before COMMAND",
        "Command executed before every run, without a shell, in the run's working directory, for "
        "example 'rm -f state.cpt'. Its time does not count.",
        TARGET,
    ),
]
FreshDir = Annotated[
    str | None,
    opt(
        "--fresh-dir DIR",
        "Start every run in a fresh copy of DIR, made beside it and removed after the run. "
        "Default: every run starts in this directory.",
        TARGET,
    ),
]
Timeout = Annotated[
    str | None,
    opt(
        "--timeout TIME",
        "Time limit of one run: 90, 90s, 10m or 2h. Default: that of --app, else 1h.",
        TARGET,
    ),
]
CleanEnv = Annotated[
    bool,
    opt(
        "--clean-env",
        "Remove inherited MPI settings (OMPI_MCA_* variables, parameter files) before "
        "each run. Default: they stay in force.",
        TARGET,
    ),
]
CommutativeOnly = Annotated[
    bool,
    opt(
        "--commutative-only",
        "All operations of the programs' reductions commute (MPI_SUM and all others that MPI has "
        "do). Allows algorithms that give wrong results otherwise. Default: only if a run shows "
        "it.",
        TARGET,
    ),
]
StoreUrl = Annotated[
    str | None,
    opt(
        "--store URL",
        "Results database: path of an SQLite file, or URL (postgresql://...).",
        envvar="AUTOTUNE_STORE",
    ),
]
JsonOut = Annotated[
    str | None,
    opt(
        "--json FILE|-",
        "Write the result as JSON to FILE ('-': to standard output, and nothing else there).",
    ),
]
Quiet = Annotated[
    bool,
    opt("--quiet -q", "Show no progress and no notes: the result and errors only."),
]
Budget = Annotated[
    str | None,
    opt(
        "--budget TIME",
        "Machine time for all launches together, for example 90s, 10m or 2h. Default: no limit.",
    ),
]
MaxRuns = Annotated[
    int | None,
    opt("--runs N", "Number of launches in all, rejected ones included. Default: no limit.", min=1),
]
Guard = Annotated[
    bool,
    opt(
        "--guard/--no-guard",
        "Reject runs during which other processes used the machine. With --no-guard they "
        "count too, and nothing is proven.",
    ),
]


def command_words(text: str | None) -> list[str] | None:
    """The words of ``--before COMMAND``; raises UsageError for an open quotation."""
    try:
        return None if text is None else shlex.split(text)
    except ValueError as problem:
        raise UsageError(
            f"--before {text!r} is not understood: {problem}; expected a command with closed "
            "quotations, such as 'rm -f state.cpt'",
            code="before.quotation",
        ) from None


def rank_counts(text: str) -> list[int]:
    """The numbers of ranks of ``--ranks 2,4``, ascending; raises UsageError for anything else."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(word.isdigit() and int(word) >= 2 for word in words):
        raise UsageError(
            f"--ranks {text!r}: expected numbers of ranks of 2 or more, separated by "
            "commas, such as 2,4",
            code="ranks.range",
        )
    return sorted({int(word) for word in words})
