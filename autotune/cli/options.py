"""The target grammar as command-line options, said once for every command that measures."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from runner.types import MetricChoice


def opt(said: str, help: str, panel: str | None = None, **more: Any) -> Any:
    """One option as its help shows it: ``"--budget TIME"``, ``"--ranks -n N"``, ``"--join"``.

    ``panel`` is the heading under which the help lists it; ``more`` goes to :class:`typer.Option`.
    """
    words = said.split()
    names = [word for word in words if word.startswith("-")]
    value = " ".join(words[len(names) :]) or None
    return typer.Option(*names, metavar=value, help=help, rich_help_panel=panel, **more)


TARGET = "Target"
Program = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- PROGRAM ARGS]", help="Any MPI program, instead of --app.", show_default=False
    ),
]
AppName = Annotated[str | None, opt("--app NAME", "A known application (autotune apps).", TARGET)]
InputName = Annotated[str | None, opt("--input I", "Which input of the application.", TARGET)]
Ranks = Annotated[
    int | None,
    opt("--ranks -n N", "MPI processes; with workers in the space: cores in all.", TARGET, min=1),
]
ClusterName = Annotated[str, opt("--cluster C", "Where it runs (autotune cluster list).", TARGET)]
Mpi = Annotated[
    str | None,
    opt(
        "--mpi P",
        "Which MPI: openmpi-5.0, mpich, or a directory. Default: the first found.",
        TARGET,
    ),
]
Metric = Annotated[
    str | None,
    opt(
        "--metric RE",
        "Regular expression with one group (seconds), or json:KEY. Default: wall time.",
        TARGET,
    ),
]
Verify = Annotated[
    str | None,
    opt(
        "--verify RE",
        "Regular expression that the output of a right run contains, or json:KEY.",
        TARGET,
    ),
]
Choice = Annotated[
    MetricChoice | None,
    opt(
        "--metric-choice",
        "Which figure counts where --metric is found several times in one run. Default: max.",
        TARGET,
    ),
]
Stdin = Annotated[
    str | None,
    opt("--stdin FILE", "What rank 0 reads from its standard input. Default: nothing.", TARGET),
]
Timeout = Annotated[
    str | None, opt("--timeout TIME", "Longest run: seconds, or 90s, 10m, 2h.", TARGET)
]
CleanEnv = Annotated[
    bool, opt("--clean-env", "Remove inherited MPI settings (variables, parameter files).", TARGET)
]
StoreUrl = Annotated[
    str | None, opt("--store URL", "Results database (path or URL).", envvar="AUTOTUNE_STORE")
]
JsonOut = Annotated[
    str | None, opt("--json FILE|-", "Write the result as JSON ('-': standard output).")
]
Budget = Annotated[str | None, opt("--budget TIME", "Machine time for all of it: 90s, 10m, 2h.")]
MaxRuns = Annotated[
    int | None, opt("--runs N", "Launches for all of it, rejected ones too.", min=1)
]
Guard = Annotated[
    bool, opt("--guard/--no-guard", "Reject runs during which other processes used the machine.")
]
