"""The request of a target: what the user gave, before anything was looked up."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import ClassVar

from pydantic import ConfigDict

from autotune.config.app import (
    App,
    app_from_command,
    check_figure,
    check_pattern,
    load_app,
    readable_metric,
)
from autotune.config.cluster import load_cluster
from autotune.errors import UsageError
from autotune.notes import Note, Say
from autotune.targets.build import linked_note
from autotune.targets.launcher_line import (
    LauncherLine,
    chosen_mpi,
    is_replaced,
    parse_launcher_line,
    script_words,
)
from autotune.targets.room import Room
from autotune.targets.target import Surroundings, Target
from autotune.targets.wrapped_launcher import is_launcher
from autotune.wording import parse_duration
from runner.errors import RunnerError
from runner.files.paths import exists, is_folder, resolved
from runner.mpi.discover import find_library
from runner.mpi.library import Library
from runner.types import MetricChoice

AUTO = "auto"
"""The metric of a request whose program's own figure is looked for."""
Apart = Callable[[Library], Surroundings]
"""A function that returns what keeps launches of a library from files that autotune published."""


@dataclass(frozen=True)
class TargetRequest:
    """A target as the user gave it, before anything was looked up.

    Either ``program`` (words; a launcher line is understood) or ``app`` (the name of a known
    application, with ``input``) is given. ``ranks`` is the number of MPI processes. ``mpi`` and
    ``cluster`` are names as on the command line. ``metric``, ``metric_rate`` and ``verify`` are
    regular expressions or ``json:KEY``. ``timeout`` is the longest run, in seconds or a text
    such as "10m". ``stdin`` is the path of rank 0's standard input. ``before`` are the words of a
    command that is executed before every run, and ``fresh_dir`` is a directory of which every run
    gets a copy. ``commutative_only`` says that all operations of the program's reductions commute.
    ``command`` is the command that makes the request, for its messages; it is empty for Python.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    program: Sequence[str] | None = None
    app: str | None = None
    input: str | None = None
    ranks: int | None = None
    cluster: str = "local"
    mpi: str | None = None
    metric: str | None = None
    verify: str | None = None
    timeout: float | str | None = None
    clean_env: bool = False
    command: str = ""
    metric_choice: MetricChoice | None = None
    stdin: str | None = None
    metric_rate: str | None = None
    before: Sequence[str] | None = None
    fresh_dir: str | None = None
    commutative_only: bool = False
    verify_absent: str | None = None
    exit_codes: str | None = None
    """Whole numbers from 0 to 255 with commas between them."""

    def resolve(self, apart: Apart, say: Say) -> Target:
        """Look everything up; raises UsageError for the first mistake.

        :data:`AUTO` must have been replaced by a metric.

        ``say`` gets a note on launch options of the cluster that the program's own line
        overrules.
        """
        refuse_nested_launch()
        if self.metric == AUTO:
            raise UsageError(
                f"{self._named('metric')} {AUTO} needs a run of the program, which this command "
                "does not make; expected a pattern, such as 'Time *= *(\\S+)'",
                code="metric.auto_here",
            )
        words = tuple(self.program or ())
        library = self._library(words)
        line = (
            parse_launcher_line(words, self.command, self.ranks, library)
            if words
            else LauncherLine(())
        )
        self._require_copy(line)
        app = self._app(line)
        cluster = load_cluster(self.cluster)
        library = library or find_library(chosen_mpi(self.mpi, words))
        surroundings = Surroundings() if self.clean_env else apart(library)
        app.input(self.input)  # Before the ranks: an unknown input is the simpler mistake.
        ranks = self._ranks(line, app)
        room = Room.of(cluster, library, line, ranks)
        if room.elsewhere and ranks <= room.cores:
            line = line.as_typed()
        target = Target.of(
            app,
            self.input,
            ranks,
            cluster,
            library,
            room=room,
            timeout_s=self.timeout_s,
            options=line.options,
            placement=line.placement,
            cores_each=line.cores_each,
            clean_env=self.clean_env,
            commutative_only=self.commutative_only,
            surroundings=surroundings,
            before=self._before(),
            fresh_copy=self.fresh_dir is not None,
            cwd=self._directory(),
        )
        for note in (*_launcher_notes(line, library), *self._misread(target)):
            say(note)
        if other := linked_note(target.program, library):
            say(other)
        if inside := script_words(line.program, self.command, Path.cwd()):
            say(Note("launcher.in_script", inside))
        for name, (theirs, own) in target.overruled.items():
            say(
                Note(
                    "launcher.overruled",
                    f"--mca {name} {own} of your command line is used; cluster {cluster.name} has "
                    f"--mca {name} {theirs}",
                    {"parameter": name, "used": own, "cluster": theirs},
                )
            )
        return target

    def _library(self, words: Sequence[str]) -> Library | None:
        """The library whose launcher a line has; None if there is no line, or no such library."""
        if not words or not is_launcher(words[0]):
            return None
        try:
            return find_library(chosen_mpi(self.mpi, words))
        except RunnerError:
            return None  # A mistake in the line is named first.

    def _before(self) -> tuple[str, ...]:
        """The words of the command before each run; raises UsageError for an empty one."""
        if self.before is None:
            return ()
        words = tuple(self.before)
        if not words or not words[0]:
            raise UsageError(
                f"{self._named('before')} is empty; expected a command that is executed before "
                "each run, such as 'rm -f state.cpt'",
                code="before.empty",
            )
        return words

    def _require_copy(self, line: LauncherLine) -> None:
        """Raise UsageError if a launcher's line leads the ranks out of the copied directory."""
        leads = {"--wdir", "-wdir", "--wd", "--set-cwd-to-session-dir"}.intersection(line.options)
        if self.fresh_dir is not None and leads:
            raise UsageError(
                f"{self._named('fresh_dir')} and {leads.pop()} of the launcher's line name two "
                "working directories; give only one of them",
                code="fresh_dir.wdir",
            )

    def _directory(self) -> str:
        """The working directory; raises UsageError if it is to be copied and is none."""
        if self.fresh_dir is None:
            return str(Path.cwd())
        place = Path(self.fresh_dir).expanduser()
        if not is_folder(place):
            raise UsageError(
                f"{self._named('fresh_dir')} {self.fresh_dir}: there is no such directory; "
                "expected the directory in which the program runs, with its input",
                code="fresh_dir.missing",
            )
        found = resolved(place)
        if found == found.parent:
            raise UsageError(
                f"{self._named('fresh_dir')} / would copy the whole machine for each run; expected "
                "the directory in which the program runs, with its input",
                code="fresh_dir.root",
            )
        return str(found)

    def _misread(self, target: Target) -> list[Note]:
        """Notes on arguments that name files here, but none where the program runs."""
        if not target.fresh_copy or Path(target.cwd) == Path.cwd():
            return []
        return [
            Note(
                "fresh_dir.argument",
                f"{word} is a file here, but not in {target.cwd}, where the program runs; its "
                "arguments are read from there",
                {"argument": word, "fresh_dir": target.cwd},
            )
            for word in target.program[1:]
            if word and exists(word) and not exists(Path(target.cwd, word))
        ]

    @property
    def timeout_s(self) -> float | None:
        """Longest run in seconds; None if not given. Raises UsageError if it is no time."""
        if isinstance(self.timeout, str):
            return parse_duration(self.timeout, f"{self._named('timeout')} ")
        return self.timeout

    def _app(self, line: LauncherLine) -> App:
        app, program = self._named("app"), self._named("program")
        if self.app and self.program:
            raise UsageError(
                f"{app} and {program} were both given; give only one of them", code="usage.conflict"
            )
        if not self.app and not self.program:
            raise UsageError(
                f"nothing to run; expected one of\n  autotune {self.command} --app NAME\n"
                f"  autotune {self.command} --ranks N -- PROGRAM ARGS\n"
                "Known applications:  autotune apps"
                if self.command
                else f"nothing to run; expected {app}, or {program} and {self._named('ranks')}.\n"
                "Known applications:  autotune apps",
                code="usage.nothing_to_run",
            )
        if not self.app:
            if self.input:
                given, of = self._named("input"), app.split()[0]
                raise UsageError(
                    f"{given} is an option for {of} only; give the program its own arguments",
                    code="usage.not_applicable",
                )
            return self.as_said(
                app_from_command(line.program, self.metric, self.verify, self.metric_rate)
            )
        names = self._named("metric"), self._named("metric_rate")
        check_figure(self.metric, self.metric_rate, *names)
        check_pattern(self._named("verify"), self.verify, 0)
        return self.as_said(load_app(self.app))

    def as_said(self, app: App) -> App:
        """The application with the values of this request."""
        check_pattern(self._named("verify_absent"), self.verify_absent, 0)
        changed: dict[str, object] = {
            "metric": self.metric,
            "metric_rate": self.metric_rate,
            "verify": self.verify,
            "verify_absent": self.verify_absent,
            "exit_codes": self._exit_codes(),
            "metric_choice": self.metric_choice,
        }
        if self.stdin is not None:
            changed["stdin"] = readable_metric(self.stdin, self._named("stdin"))
            changed["inputs"] = {
                name: given.model_copy(update={"stdin": None}) for name, given in app.inputs.items()
            }
        changed = {name: value for name, value in changed.items() if value is not None}
        # One figure counts: what the request names replaces what the application's file names.
        if "metric" in changed or "metric_rate" in changed:
            changed = {"metric": None, "metric_rate": None, **changed}
        if self.metric_choice and app.model_copy(update=changed).figure is None:
            choice, metric = self._named("metric_choice"), self._named("metric")
            rate = self._named("metric_rate")
            raise UsageError(
                f"{choice} needs {metric} or {rate}: without them the wall time counts, and a run "
                "has only one",
                code="metric.missing",
            )
        return app.model_copy(update=changed)

    def _exit_codes(self) -> tuple[int, ...] | None:
        """The numbers of ``exit_codes``; raises UsageError for anything else."""
        if self.exit_codes is None:
            return None
        texts = [text.strip() for text in self.exit_codes.split(",")]
        if not all(text.isascii() and text.isdigit() and int(text) < 256 for text in texts):
            raise UsageError(
                f"{self._named('exit_codes')} {self.exit_codes!r}: expected whole numbers from 0 "
                "to 255 with commas between them, such as 0,1",
                code="exit_codes.range",
            )
        return tuple(sorted({int(text) for text in texts}))

    def _ranks(self, line: LauncherLine, app: App) -> int:
        if self.ranks and line.ranks and self.ranks != line.ranks:
            raise UsageError(
                f"--ranks {self.ranks} and the launcher line's {line.ranks} ranks contradict "
                "each other; give only one of them",
                code="ranks.conflict",
            )
        ranks = self.ranks or line.ranks or app.input(self.input).ranks or app.default_ranks
        if ranks is None:
            if inside := script_words(line.program, self.command, Path.cwd()):
                raise UsageError(inside, code="launcher.inside")
            how = f"autotune {self.command} --ranks N ..." if self.command else "ranks=N"
            cores = len(os.sched_getaffinity(0))
            raise UsageError(
                f"the number of ranks is missing; expected {how} (this machine has {cores} cores)",
                code="ranks.missing",
            )
        return ranks

    def _named(self, field: str) -> str:
        """The name of a field as the caller writes it: an option, or a Python argument."""
        if self.command:
            return _OPTIONS.get(field, f"--{field.replace('_', '-')}")
        return f"{field}="


_OPTIONS = {"app": "--app NAME", "program": "-- PROGRAM ARGS"}


def _launcher_notes(line: LauncherLine, library: Library) -> list[Note]:
    """What of a launcher's line is not done as it stands there."""
    notes = []
    if line.launcher is not None and is_replaced(line.launcher):
        name = PurePath(line.launcher).name
        started = shlex.join([PurePath(library.launcher).name, *line.options])
        notes.append(
            Note(
                "launcher.replaced",
                f"{name} is not used: {started} of {library.family} {library.version} starts the "
                "ranks",
                {"launcher": name, "used": library.launcher},
            )
        )
    if line.dropped:
        notes.append(
            Note(
                "launcher.dropped",
                f"not handed to the launcher: {' '.join(line.dropped)}",
                {"options": list(line.dropped)},
            )
        )
    return notes


def refuse_nested_launch() -> None:
    """Raise UsageError if autotune was started by a launcher, since every rank would then tune."""
    for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"):
        if name in os.environ:
            raise UsageError(
                f"autotune was started inside an MPI launch ({name} is set), and mpirun inside "
                "mpirun does not work.\nStart autotune without a launcher; it starts mpirun "
                "itself.",
                code="launcher.nested",
            )
