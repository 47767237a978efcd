"""The programs of a publication's evidence, to be run again: by name, or as the file says.

A header is data: what it calls a program is looked up among the applications that are known here.
The command line that it holds is run only where this command line says so (``--run-recorded``).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from autotune.collectives.candidates import OPERATIONS
from autotune.collectives.machine import MICRO, program
from autotune.config.app import App, app_from_command, load_app
from autotune.config.cluster import Cluster
from autotune.config.find import listing
from autotune.errors import UsageError
from autotune.publish.owner import check_config, check_owner
from autotune.study.target import Target
from runner.machine import describe
from runner.mpi.library import Library
from runner.types import MetricChoice

_SIZES = re.compile(r"[0-9]{1,9}(,[0-9]{1,9}){0,99}")
_LARGEST = 1 << 28


@dataclass(frozen=True)
class NotRun:
    """A program that is not run: what it would be, and how to allow it."""

    name: str
    words: str
    command: tuple[str, ...]


def target_of(
    check: Mapping[str, Any],
    cluster: Cluster,
    library: Library,
    origin: str,
    recorded: bool,
) -> Target | NotRun:
    """The program of one entry of the evidence.  ``recorded``: its command line may be run.

    Raises UsageError for a damaged entry, and where the program is not there.
    """
    name, chosen, ranks = _entry(check, origin)
    app = _known(name, check)
    if app is None:
        command = tuple(check.get("program") or ())
        if not command or not recorded:
            return NotRun(name, _how(name, command, origin), command)
        app = app_from_command(command, check.get("metric"), check.get("verify"))
        told = {"metric_choice": check.get("metric_choice") or "last", "stdin": check.get("stdin")}
        app = App.model_validate({**app.model_dump(), **told})
        check_owner(Path(app.command[0]))
        chosen = None
    given = app.input(chosen)
    return Target(
        app=app,
        input=chosen or app.default_input or None,
        ranks=ranks,
        cluster=cluster,
        library=library,
        cores=cluster.cores or (cluster.cores_per_node or describe().cores) * cluster.nodes,
        timeout_s=given.timeout_s or app.timeout_s,
        clean_env=True,
    )


def _entry(check: Mapping[str, Any], origin: str) -> tuple[str, str | None, int]:
    name, chosen, ranks = check.get("app"), check.get("input"), check.get("ranks")
    words = check.get("program", [])
    texts = [name, *(check.get(key) or "" for key in ("input", "metric", "verify", "stdin"))]
    choice = check.get("metric_choice", "last") in get_args(MetricChoice)
    good = choice and isinstance(words, list) and all(isinstance(t, str) for t in [*texts, *words])
    if not good or isinstance(ranks, bool) or not isinstance(ranks, int) or ranks < 1:
        raise UsageError(
            f"{origin}: the evidence does not say what to run again: expected app (a name), "
            f"input, ranks (a number) and perhaps program (a list of words); found {dict(check)!r}"
        )
    return str(name), chosen, ranks


def _known(name: str, check: Mapping[str, Any]) -> App | None:
    """The application of that name here; the micro-benchmark of collectives is one of them."""
    for file in listing("apps"):
        if file.name == name:
            check_config(file)
            return load_app(name)
    words = list(check.get("program", []))[1:]
    match words:
        case ["-m", "runner.micro", operation, "--size", sizes, "--count", _] if (
            name == f"{MICRO} {operation}" and operation in OPERATIONS and _SIZES.fullmatch(sizes)
        ):
            numbers = [int(size) for size in sizes.split(",")]
            if min(numbers) > 0 and max(numbers) <= _LARGEST:
                base = load_app(MICRO)
                command = (*base.command, *program(operation, numbers))
                return base.model_copy(
                    update={"name": name, "command": command, "inputs": {}, "default_input": ""}
                )
    return None


def _how(name: str, command: tuple[str, ...], origin: str) -> str:
    if not command:
        return f"no application here is called {name}; give it a file configs/apps/NAME.toml"
    words = "".join(c if c.isprintable() else "?" for c in shlex.join(command))
    return (
        f"{name} is no application that is known here, and programs of a file are not run unasked. "
        f"The evidence ({origin}) would run\n  {words}\n"
        "--run-recorded runs it; a file configs/apps/NAME.toml makes it known"
    )
