"""The programs of a publication's evidence, to be run again: known applications or command lines.

A header is data from outside: its program names are looked up among the applications that are known
here.  A recorded command line is run only if this command line allows it (``--run-recorded``).  It
is then run in the recorded directory and environment, because its words may be relative to them.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from autotune.collectives.measurement import MICRO, micro_program
from autotune.collectives.tournament import OPERATIONS
from autotune.config.app import App, app_from_command, load_app
from autotune.config.cluster import Cluster
from autotune.config.figures import with_known_figure
from autotune.config.find import list_configs
from autotune.errors import UsageError
from autotune.publish.install import check_config, check_owner
from autotune.store.keys import BEFORE, CLEAN_ENV, FRESH_DIR
from autotune.targets.provenance import Provenance
from autotune.targets.target import Target
from runner.mpi.library import Library
from runner.types import MetricChoice

_SIZES = re.compile(r"[0-9]{1,9}(,[0-9]{1,9}){0,99}")
_LARGEST = 1 << 28


@dataclass(frozen=True)
class NotRun:
    """A program that is not run: its command, and how to allow it.

    ``is_broken``: it was allowed, but it cannot be run as recorded.
    """

    name: str
    words: str
    command: tuple[str, ...]
    is_broken: bool = False


@dataclass(frozen=True)
class EvidenceProgram:
    """A program to be run again; ``origin`` None: in the present directory and environment."""

    target: Target
    origin: Provenance | None = None


def program_of(
    check: Mapping[str, Any],
    cluster: Cluster,
    library: Library,
    where: str,
    run_recorded: bool,
) -> EvidenceProgram | NotRun:
    """The program of one entry of the evidence, from the file ``where``.

    ``run_recorded``: its recorded command line may be run, in the recorded directory and
    environment.  Raises UsageError for a damaged entry, and for a program that root must not run.
    """
    name, input_name, ranks = _entry(check, where)
    command = tuple(check.get("program") or ())
    if check.get(BEFORE) or check.get(FRESH_DIR):
        return NotRun(name, _preparation_words(check), command)
    app = _known_app(name, check)
    if app is None and not (command and run_recorded):
        return NotRun(name, _how(name, command, check, where), command)
    origin = None
    if app is None:
        if check.get("origin") is not None:
            origin = Provenance.from_json(check["origin"], where)
        if origin is not None and (changes := origin.changes()):
            return NotRun(name, _failure_words("; ".join(changes)), command, is_broken=True)
        try:
            app = _recorded_app(command, check, origin)
        except UsageError as problem:
            return NotRun(
                name, _failure_words(f"{problem}", origin is None), command, is_broken=True
            )
        for path in dict.fromkeys((app.command[0], *(origin.files if origin else ()))):
            check_owner(Path(path))
        input_name = None
    target = Target.of(
        app,
        input_name,
        ranks,
        cluster,
        library,
        options=tuple(check.get("options") or ()) if run_recorded else (),
        placement=dict(check.get("placement") or {}) if run_recorded else {},
        clean_env=check.get(CLEAN_ENV) is True,
        cwd=str(Path.cwd()) if origin is None else origin.cwd,
    )
    return EvidenceProgram(target, origin)


def recorded_only(checks: Iterable[Mapping[str, Any]]) -> bool:
    """Whether one of these programs is known by its command line only (``--run-recorded``)."""
    return any(
        check.get("program") and _known_app(str(check.get("app")), check) is None
        for check in checks
    )


def _recorded_app(
    command: tuple[str, ...], check: Mapping[str, Any], origin: Provenance | None
) -> App:
    """The recorded command line as an application, its program with an absolute path."""
    first = command[0]
    if origin is not None and "/" in first:
        first = str(Path(origin.cwd, first))
    elif origin is not None:
        first = shutil.which(first, path=origin.env.get("PATH")) or first
    figure, rate = check.get("metric"), bool(check.get("metric_rate"))
    app = app_from_command(
        (first, *command[1:]),
        None if rate else figure,
        check.get("verify"),
        figure if rate else None,
    )
    reading = {"metric_choice": check.get("metric_choice"), "stdin": check.get("stdin")}
    return App.model_validate({**app.model_dump(), **reading})


def _preparation_words(check: Mapping[str, Any]) -> str:
    """Why a program is not run whose runs were prepared by a command or a copy."""
    options = [f"--before {check[BEFORE]!r}"] if check.get(BEFORE) else []
    options += [f"--fresh-dir {check[FRESH_DIR]!r}"] if check.get(FRESH_DIR) else []
    return (
        f"its runs were prepared by {' and '.join(options)}, which is not carried out because a "
        "file says so. Compare the published setting with the default yourself: autotune compare "
        "default @FILE with these options"
    )


def _failure_words(why: str, nowhere: bool = False) -> str:
    advice = "Restore it, or search and publish again"
    if nowhere:
        advice = (
            "The file does not say in which directory it was run: give the command in that "
            "directory, or search and publish again"
        )
    return f"{why}.\n{advice}"


def _entry(check: Mapping[str, Any], where: str) -> tuple[str, str | None, int]:
    name, input_name, ranks = check.get("app"), check.get("input"), check.get("ranks")
    words, options = check.get("program", []), check.get("options") or []
    placement = check.get("placement") or {}
    texts = [name, *(check.get(key) or "" for key in ("input", "metric", "verify", "stdin"))]
    good = check.get("metric_choice") in (None, *get_args(MetricChoice))
    good = good and isinstance(check.get("metric_rate", False), bool)
    good = good and isinstance(words, list) and isinstance(options, list)
    good = good and isinstance(placement, dict)
    if good:
        texts += [*words, *options, *placement, *placement.values()]
    good = good and all(isinstance(t, str) for t in texts)
    if not good or isinstance(ranks, bool) or not isinstance(ranks, int) or ranks < 1:
        raise UsageError(
            f"{where}: the evidence does not say what to run again: expected app (a name), "
            f"input, ranks (a number) and perhaps program (a list of words); found {dict(check)!r}",
            code="published.program_unknown",
        )
    return str(name), input_name, ranks


def _known_app(name: str, check: Mapping[str, Any]) -> App | None:
    """The known application with that name; the micro-benchmark of collectives is one of them."""
    for file in list_configs("apps"):
        if file.name == name:
            check_config(file)
            return with_known_figure(load_app(name))
    words = list(check.get("program", []))[1:]
    match words[words[:1] == ["-P"] :]:
        case ["-m", "runner.programs.micro", operation, "--size", sizes, "--count", _] if (
            name == f"{MICRO} {operation}" and operation in OPERATIONS and _SIZES.fullmatch(sizes)
        ):
            numbers = [int(size) for size in sizes.split(",")]
            if min(numbers) > 0 and max(numbers) <= _LARGEST:
                base = load_app(MICRO)
                command = (*base.command, *micro_program(operation, numbers))
                return base.model_copy(
                    update={"name": name, "command": command, "inputs": {}, "default_input": ""}
                )
    return None


def _how(name: str, command: tuple[str, ...], check: Mapping[str, Any], where: str) -> str:
    if not command:
        return f"no application here is called {name}; define it in a file configs/apps/NAME.toml"
    launch = [*(check.get("options") or ()), *(check.get("placement") or {}).items()]
    words = [shlex.join(command)]
    if launch:
        words.append(f"with {' '.join(w if isinstance(w, str) else '='.join(w) for w in launch)}")
    origin = check.get("origin")
    if isinstance(origin, dict):
        words.append(f"in {origin.get('cwd')!s}, with the variables that were set there")
    printable = "\n  ".join("".join(c if c.isprintable() else "?" for c in line) for line in words)
    return (
        f"{name} is not an application known here, and commands recorded in a file are "
        f"not run unasked. The evidence ({where}) would run\n  {printable}\n--run-recorded "
        "runs it; a file configs/apps/NAME.toml makes it known"
    )
