"""The target grammar as command-line options, said once for every command that measures."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.render import error_console
from autotune.config.app import (
    App,
    app_from_command,
    check_pattern,
    load_app,
    readable,
    require_tunable,
)
from autotune.config.cluster import Cluster, load_cluster
from autotune.errors import UsageError
from autotune.publish.record import published
from autotune.space import Space, load_space
from autotune.study.duration import parse_duration
from autotune.study.launcher_line import LauncherLine, chosen_mpi, fixed_parameters, parse
from autotune.study.linked import linked_words
from autotune.study.resources import require_room
from autotune.study.target import Surroundings, Target
from runner.machine import describe
from runner.mpi.discover import find
from runner.mpi.library import Library
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


@dataclass(frozen=True)
class TargetWords:
    """What the options said, before anything was looked up."""

    program: list[str] | None
    app: str | None
    input: str | None
    ranks: int | None
    cluster: str
    mpi: str | None
    metric: str | None
    verify: str | None
    timeout: str | None
    clean_env: bool = False
    command: str = "search"
    metric_choice: MetricChoice | None = None
    stdin: str | None = None

    def resolve(self) -> Target:
        """Look everything up; every mistake is one UsageError."""
        refuse_nested_launch()
        line = parse(tuple(self.program), self.command) if self.program else LauncherLine(())
        app = self._app(line)
        cluster = load_cluster(self.cluster)
        library = find(chosen_mpi(self.mpi, line))
        surroundings = self._apart(library)
        given = app.input(self.input)
        target = Target(
            app=app,
            input=self.input or app.usual_input or None,
            ranks=self._ranks(line, app),
            cluster=cluster,
            library=library,
            cores=total_cores(cluster),
            timeout_s=self.timeout_s or given.timeout_s or app.timeout_s,
            options=line.options,
            placement=line.placement,
            clean_env=self.clean_env,
            surroundings=surroundings,
        )
        other = linked_words(target.program, library)
        if other:
            error_console().print(other, markup=False)
        for name, (theirs, own) in target.overruled.items():
            error_console().print(
                f"--mca {name} {own} of your line is used; cluster {cluster.name} has "
                f"--mca {name} {theirs}",
                markup=False,
                soft_wrap=True,
            )
        return target

    @property
    def timeout_s(self) -> float | None:
        """Longest run in seconds, as this command line says; None: it says nothing."""
        return None if self.timeout is None else parse_duration(self.timeout, "--timeout ")

    def _apart(self, library: Library) -> Surroundings:
        """Files that autotune published are out of force wherever a default is measured."""
        if self.clean_env or not published():
            return Surroundings()
        # The formats take a while to import, and most have published nothing.
        from autotune.publish.neutral import neutral

        found = neutral(library, os.environ)
        for name in found.unset:
            del os.environ[name]
        if found:
            listed = ", ".join(str(path) for path in found.files)
            error_console().print(
                f"out of force while measuring, since autotune published it: {listed}",
                markup=False,
                soft_wrap=True,
            )
        return found.surroundings

    def _app(self, line: LauncherLine) -> App:
        if self.app and self.program:
            raise UsageError("give either --app NAME or -- PROGRAM ARGS, not both")
        if not self.app and not self.program:
            raise UsageError(
                f"nothing to run: autotune {self.command} --app NAME, or\n"
                f"autotune {self.command} --ranks N -- PROGRAM ARGS.\n"
                "Known applications: autotune apps"
            )
        if not self.app:
            if self.input:
                raise UsageError("--input belongs to --app; a program takes its own arguments")
            return self.as_said(app_from_command(line.program, self.metric, self.verify))
        check_pattern("--metric", self.metric, 1)
        check_pattern("--verify", self.verify, 0)
        return self.as_said(load_app(self.app))

    def as_said(self, app: App) -> App:
        """The application with what this command line says of it."""
        changed: dict[str, object] = {
            "metric": self.metric,
            "verify": self.verify,
            "metric_choice": self.metric_choice,
        }
        if self.stdin is not None:
            changed["stdin"] = readable(self.stdin, "--stdin")
            changed["inputs"] = {
                name: given.model_copy(update={"stdin": None}) for name, given in app.inputs.items()
            }
        changed = {name: value for name, value in changed.items() if value is not None}
        if self.metric_choice and (app.metric if self.metric is None else self.metric) is None:
            raise UsageError("--metric-choice goes with --metric: without one wall time counts")
        return app.model_copy(update=changed)

    def _ranks(self, line: LauncherLine, app: App) -> int:
        if self.ranks and line.ranks and self.ranks != line.ranks:
            raise UsageError(
                f"--ranks {self.ranks} and the launcher line's {line.ranks} ranks contradict "
                "each other; give one"
            )
        ranks = self.ranks or line.ranks or app.input(self.input).ranks or app.default_ranks
        if ranks is None:
            raise UsageError(
                f"how many ranks?  autotune {self.command} --ranks N ... (this machine has "
                f"{len(os.sched_getaffinity(0))} cores)"
            )
        return ranks


def total_cores(cluster: Cluster) -> int:
    """Cores that a launch on the cluster may use in all."""
    return cluster.cores or (cluster.cores_per_node or describe().cores) * cluster.nodes


def refuse_nested_launch() -> None:
    """autotune starts launchers itself; started by one, every rank would tune."""
    for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"):
        if name in os.environ:
            raise UsageError(
                f"autotune was started inside an MPI launch ({name} is set): mpirun inside mpirun "
                "does not work.\nStart autotune itself without a launcher; it starts mpirun."
            )


def space_for(target: Target, name: str | None) -> Space:
    """The space of that name for this target's MPI; the cluster's usual one by default.

    Raises UsageError for one whose options the program does not understand, or whose processes and
    workers do not fit into the target's ranks.
    """
    library: Library = target.library
    space = load_space(
        name or target.cluster.space(library),
        library=library,
        facts=target.facts,
        app_facts=target.app_facts,
    ).without(_fixed(target))
    require_tunable(target.app, space.name, space.requires)
    require_room(space, target.ranks)
    return space


def _fixed(target: Target) -> dict[str, str]:
    """Parameters that are not searched, each with the reason."""
    names = [*fixed_parameters(target.options), *target.placement]
    return {**target.cluster.fixed, **dict.fromkeys(names, "your launcher line sets it")}


def check_writable(path: Path) -> None:
    """Refuse a place that cannot be written before hours of work go into it."""
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"cannot write {path}: no such directory, or no permission")
