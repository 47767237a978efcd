"""Looks up what a request names: program, cluster, library, ranks."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath

from autotune.config.app import App, app_from_command, load_app
from autotune.config.app_program import readable_file
from autotune.config.cluster import load_cluster
from autotune.config.figures import with_known_figure
from autotune.config.pattern import check_figure, check_pattern
from autotune.errors import UsageError
from autotune.notes import Note, Say
from autotune.targets.launcher_line import (
    LauncherLine,
    is_replaced,
    parse_launcher_line,
    program_of,
    script_words,
)
from autotune.targets.mpi_choice import MpiChoice, choose
from autotune.targets.request import AUTO, TargetRequest
from autotune.targets.room import Room
from autotune.targets.target import Surroundings, Target
from autotune.targets.wrapped_launcher import is_launcher
from autotune.wording import whole_number
from runner.errors import RunnerError
from runner.files.paths import exists, is_folder, real_path
from runner.mpi.library import Library
from runner.mpi.srun import is_srun

Isolate = Callable[[Library], Surroundings]
"""A function that returns what keeps launches of a library from files that autotune published."""


def resolve(request: TargetRequest, isolate: Isolate, say: Say) -> Target:
    """Look everything up; raises UsageError for the first mistake.

    :data:`AUTO` must have been replaced by a metric.

    ``say`` gets a note on launch options of the cluster that the program's own line
    overrules.
    """
    refuse_nested_launch()
    if request.metric == AUTO:
        raise UsageError(
            f"{request.name_of('metric')} {AUTO} needs a run of the program, which this command "
            "does not make; expected a pattern, such as 'Time *= *(\\S+)'",
            code="metric.auto_here",
        )
    words = tuple(request.program or ())
    choice = _choice(request, words)
    library = None if choice is None else choice.library
    line = (
        parse_launcher_line(words, request.command, request.ranks, library)
        if words
        else LauncherLine(())
    )
    _require_copy(request, line)
    app = _app(request, line)
    cluster = load_cluster(request.cluster)
    choice = choice or choose(request.mpi, words, _program(request, line, app))
    library = choice.library
    surroundings = Surroundings() if request.clean_env else isolate(library)
    app.input(request.input)  # Before the ranks: an unknown input is the simpler mistake.
    ranks = _ranks(request, line, app)
    room = Room.of(cluster, library, line, ranks)
    if room.on_other_nodes and ranks <= room.cores:
        line = line.with_oversubscription()
    target = Target.of(
        app,
        request.input,
        ranks,
        cluster,
        library,
        room=room,
        timeout_s=request.timeout_s,
        options=line.options,
        placement=line.placement,
        cores_each=line.cores_each,
        clean_env=request.clean_env,
        commutative_only=request.commutative_only,
        surroundings=surroundings,
        before=_before(request),
        choice=choice,
        fresh_copy=request.fresh_dir is not None,
        cwd=_directory(request),
    )
    say(choice.note)
    for note in (*_launcher_notes(line, library), *_misread(request, target)):
        say(note)
    if inside := script_words(line.program, request.command, Path.cwd()):
        say(Note("launcher.in_script", inside))
    for name, (theirs, own) in target.overruled.items():
        say(
            Note(
                "launcher.overruled",
                f"{name}={own} of your command line is used; cluster {cluster.name} has "
                f"{name}={theirs}",
                {"parameter": name, "used": own, "cluster": theirs},
            )
        )
    return target


def _choice(request: TargetRequest, words: Sequence[str]) -> MpiChoice | None:
    """The library for a line with a launcher; None if there is no line, or no such library."""
    if not words or not is_launcher(words[0]):
        return None
    try:
        return choose(request.mpi, words, program_of(words))
    except RunnerError:
        return None  # A mistake in the line is named first.


def _program(request: TargetRequest, line: LauncherLine, app: App) -> Sequence[str]:
    """The words of the program as far as they are known; () if they are not."""
    try:
        return app.program(request.input, request.ranks or line.ranks or app.default_ranks)
    except UsageError:
        return ()  # The target names the mistake.


def _before(request: TargetRequest) -> tuple[str, ...]:
    """The words of the command before each run; raises UsageError for an empty one."""
    if request.before is None:
        return ()
    words = tuple(request.before)
    if not words or not words[0]:
        raise UsageError(
            f"{request.name_of('before')} is empty; expected a command that is executed before "
            "each run, such as 'rm -f state.cpt'",
            code="before.empty",
        )
    return words


def _require_copy(request: TargetRequest, line: LauncherLine) -> None:
    """Raise UsageError if a launcher's line leads the ranks out of the copied directory."""
    leads = {"--wdir", "-wdir", "--wd", "--set-cwd-to-session-dir"}.intersection(line.options)
    if request.fresh_dir is not None and leads:
        raise UsageError(
            f"{request.name_of('fresh_dir')} and {leads.pop()} of the launcher's line name two "
            "working directories; give only one of them",
            code="fresh_dir.wdir",
        )


def _directory(request: TargetRequest) -> str:
    """The working directory; raises UsageError if it is to be copied and is none."""
    if request.fresh_dir is None:
        return str(Path.cwd())
    place = Path(request.fresh_dir).expanduser()
    if not is_folder(place):
        raise UsageError(
            f"{request.name_of('fresh_dir')} {request.fresh_dir}: there is no such directory; "
            "expected the directory in which the program runs, with its input",
            code="fresh_dir.missing",
        )
    path = real_path(place)
    if path == path.parent:
        raise UsageError(
            f"{request.name_of('fresh_dir')} / would copy the whole machine for each run; expected "
            "the directory in which the program runs, with its input",
            code="fresh_dir.root",
        )
    return str(path)


def _misread(request: TargetRequest, target: Target) -> list[Note]:
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


def _app(request: TargetRequest, line: LauncherLine) -> App:
    app, program = request.name_of("app"), request.name_of("program")
    if request.app and request.program:
        raise UsageError(
            f"{app} and {program} were both given; give only one of them", code="usage.conflict"
        )
    if not request.app and not request.program:
        raise UsageError(
            f"nothing to run; expected one of\n  autotune {request.command} --app NAME\n"
            f"  autotune {request.command} --ranks N -- PROGRAM ARGS\n"
            "Known applications:  autotune apps"
            if request.command
            else f"nothing to run; expected {app}, or {program} and {request.name_of('ranks')}.\n"
            "Known applications:  autotune apps",
            code="usage.nothing_to_run",
        )
    if not request.app:
        if request.input:
            input_name, of = request.name_of("input"), app.split()[0]
            raise UsageError(
                f"{input_name} is an option for {of} only; give the program its own arguments",
                code="usage.not_applicable",
            )
        return with_request(
            app_from_command(line.program, request.metric, request.verify, request.metric_rate),
            request,
        )
    names = request.name_of("metric"), request.name_of("metric_rate")
    check_figure(request.metric, request.metric_rate, *names)
    check_pattern(request.name_of("verify"), request.verify, 0)
    return with_request(with_known_figure(load_app(request.app)), request)


def with_request(app: App, request: TargetRequest) -> App:
    """The application with the values of this request."""
    check_pattern(request.name_of("verify_absent"), request.verify_absent, 0)
    updates: dict[str, object] = {
        "metric": request.metric,
        "metric_rate": request.metric_rate,
        "verify": request.verify,
        "verify_absent": request.verify_absent,
        "exit_codes": _exit_codes(request),
        "metric_choice": request.metric_choice,
    }
    if request.stdin is not None:
        updates["stdin"] = readable_file(request.stdin, request.name_of("stdin"))
        updates["inputs"] = {
            name: variant.model_copy(update={"stdin": None}) for name, variant in app.inputs.items()
        }
    updates = {name: value for name, value in updates.items() if value is not None}
    # One figure counts: what the request names replaces what the application's file names.
    if "metric" in updates or "metric_rate" in updates:
        updates = {"metric": None, "metric_rate": None, **updates}
    if request.metric_choice and app.model_copy(update=updates).figure is None:
        choice, metric = request.name_of("metric_choice"), request.name_of("metric")
        rate = request.name_of("metric_rate")
        raise UsageError(
            f"{choice} needs {metric} or {rate}: without them the wall time counts, and a run "
            "has only one",
            code="metric.missing",
        )
    return app.model_copy(update=updates)


def _exit_codes(request: TargetRequest) -> tuple[int, ...] | None:
    """The numbers of ``exit_codes``; raises UsageError for anything else."""
    if request.exit_codes is None:
        return None
    codes = [whole_number(text.strip(), 255) for text in request.exit_codes.split(",")]
    if None in codes:
        raise UsageError(
            f"{request.name_of('exit_codes')} {request.exit_codes!r}: expected whole numbers from "
            "0 to 255 with commas between them, such as 0,1",
            code="exit_codes.range",
        )
    return tuple(sorted({code for code in codes if code is not None}))


def _ranks(request: TargetRequest, line: LauncherLine, app: App) -> int:
    if request.ranks and line.ranks and request.ranks != line.ranks:
        raise UsageError(
            f"--ranks {request.ranks} and the launcher line's {line.ranks} ranks contradict "
            "each other; give only one of them",
            code="ranks.conflict",
        )
    ranks = request.ranks or line.ranks or app.input(request.input).ranks or app.default_ranks
    if ranks is None:
        if inside := script_words(line.program, request.command, Path.cwd()):
            raise UsageError(inside, code="launcher.inside")
        how = f"autotune {request.command} --ranks N ..." if request.command else "ranks=N"
        cores = len(os.sched_getaffinity(0))
        raise UsageError(
            f"the number of ranks is missing; expected {how} (this machine has {cores} cores)",
            code="ranks.missing",
        )
    return ranks


def _launcher_notes(line: LauncherLine, library: Library) -> list[Note]:
    """What of a launcher's line is not done as it stands there."""
    notes = []
    if line.launcher is not None and is_replaced(line.launcher) and not is_srun(library.launcher):
        name = PurePath(line.launcher).name
        start_words = shlex.join([PurePath(library.launcher).name, *line.options])
        notes.append(
            Note(
                "launcher.replaced",
                f"{name} is not used: {start_words} of {library.family} {library.version} starts "
                "the ranks",
                {"launcher": name, "used": library.launcher},
            )
        )
    if line.left_out:
        notes.append(
            Note(
                "launcher.dropped",
                f"not handed to the launcher: {' '.join(line.left_out)}",
                {"options": list(line.left_out)},
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
