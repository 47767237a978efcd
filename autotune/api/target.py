"""A target as it is asked for: names and words, looked up on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autotune.config.app import App, app_from_command, check_pattern, load_app, readable
from autotune.config.cluster import load_cluster
from autotune.errors import UsageError
from autotune.study.launcher_line import LauncherLine, parse
from autotune.study.target import Surroundings, Target
from runner.mpi.discover import find
from runner.types import MetricChoice

if TYPE_CHECKING:
    from runner.mpi.library import Library

Say = Callable[[str], None]
"""Takes one sentence for the user."""


def to_stderr(words: str) -> None:
    """One line on standard error."""
    print(words, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class TargetRequest:
    """What was said of a target, before anything was looked up.

    Either ``program`` (words; a launcher line is understood) or ``app`` (the name of a known
    application, with ``input``).  ``ranks`` are MPI processes; ``mpi`` and ``cluster`` are names as
    on the command line; ``metric`` and ``verify`` are regular expressions or ``json:KEY``;
    ``timeout`` is the longest run in seconds; ``stdin`` the path of rank 0's standard input.
    ``command`` is the command that asks, for its messages; empty where Python asks.
    """

    program: Sequence[str] | None = None
    app: str | None = None
    input: str | None = None
    ranks: int | None = None
    cluster: str = "local"
    mpi: str | None = None
    metric: str | None = None
    verify: str | None = None
    timeout: float | None = None
    clean_env: bool = False
    command: str = ""
    metric_choice: MetricChoice | None = None
    stdin: str | None = None

    def resolve(self, say: Say = to_stderr) -> Target:
        """Look everything up; every mistake is one UsageError.

        Files that autotune published are put out of force: variables that name them leave this
        process's environment.
        """
        refuse_nested_launch()
        line = parse(tuple(self.program), self.command) if self.program else LauncherLine(())
        app = self._app(line)
        cluster = load_cluster(self.cluster)
        library = find(self.mpi)
        surroundings = self._apart(library, say)
        app.input(self.input)  # Before the ranks: an unknown input is the plainer mistake.
        target = Target.of(
            app,
            self.input,
            self._ranks(line, app),
            cluster,
            library,
            timeout_s=self.timeout,
            options=line.options,
            placement=line.placement,
            clean_env=self.clean_env,
            surroundings=surroundings,
        )
        for name, (theirs, own) in target.overruled.items():
            say(
                f"--mca {name} {own} of your line is used; cluster {cluster.name} has "
                f"--mca {name} {theirs}"
            )
        return target

    def _apart(self, library: Library, say: Say) -> Surroundings:
        """Files that autotune published are out of force wherever a default is measured."""
        from autotune.publish.record import published

        if self.clean_env or not published():
            return Surroundings()
        # The formats take a while to import, and most have published nothing.
        from autotune.publish.neutral import neutral

        found = neutral(library, os.environ)
        for name in found.unset:
            del os.environ[name]
        if found:
            listed = ", ".join(str(path) for path in found.files)
            say(f"out of force while measuring, since autotune published it: {listed}")
        return found.surroundings

    def _app(self, line: LauncherLine) -> App:
        app, program = self._named("app"), self._named("program")
        if self.app and self.program:
            raise UsageError(f"give either {app} or {program}, not both")
        if not self.app and not self.program:
            raise UsageError(
                f"nothing to run: autotune {self.command} --app NAME, or\n"
                f"autotune {self.command} --ranks N -- PROGRAM ARGS.\n"
                "Known applications: autotune apps"
                if self.command
                else f"nothing to run: give {app}, or {program} and {self._named('ranks')}.\n"
                "Known applications: autotune apps"
            )
        if not self.app:
            if self.input:
                given, of = self._named("input"), app.split()[0]
                raise UsageError(f"{given} belongs to {of}; a program takes its own arguments")
            return self.as_said(app_from_command(line.program, self.metric, self.verify))
        check_pattern(self._named("metric"), self.metric, 1)
        check_pattern(self._named("verify"), self.verify, 0)
        return self.as_said(load_app(self.app))

    def as_said(self, app: App) -> App:
        """The application with what this request says of it."""
        changed: dict[str, object] = {
            "metric": self.metric,
            "verify": self.verify,
            "metric_choice": self.metric_choice,
        }
        if self.stdin is not None:
            changed["stdin"] = readable(self.stdin, self._named("stdin"))
            changed["inputs"] = {
                name: given.model_copy(update={"stdin": None}) for name, given in app.inputs.items()
            }
        changed = {name: value for name, value in changed.items() if value is not None}
        if self.metric_choice and (app.metric if self.metric is None else self.metric) is None:
            choice, metric = self._named("metric_choice"), self._named("metric")
            raise UsageError(f"{choice} goes with {metric}: without one wall time counts")
        return app.model_copy(update=changed)

    def _ranks(self, line: LauncherLine, app: App) -> int:
        if self.ranks and line.ranks and self.ranks != line.ranks:
            raise UsageError(
                f"--ranks {self.ranks} and the launcher line's {line.ranks} ranks contradict "
                "each other; give one"
            )
        ranks = self.ranks or line.ranks or app.input(self.input).ranks or app.default_ranks
        if ranks is None:
            how = f"autotune {self.command} --ranks N ..." if self.command else "ranks=N"
            cores = len(os.sched_getaffinity(0))
            raise UsageError(f"how many ranks?  {how} (this machine has {cores} cores)")
        return ranks

    def _named(self, field: str) -> str:
        """A field as the one who asks writes it: an option, or a Python argument."""
        if self.command:
            return _OPTIONS.get(field, f"--{field.replace('_', '-')}")
        return f"{field}="


_OPTIONS = {"app": "--app NAME", "program": "-- PROGRAM ARGS"}


def refuse_nested_launch() -> None:
    """autotune starts launchers itself; started by one, every rank would tune."""
    for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"):
        if name in os.environ:
            raise UsageError(
                f"autotune was started inside an MPI launch ({name} is set): mpirun inside mpirun "
                "does not work.\nStart autotune itself without a launcher; it starts mpirun."
            )
