"""``autotune verify-published``: are published defaults in force, and still faster?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autotune.api.verify import compare_again, existing_publications, look_at
from autotune.cli.options import Guard, JsonOut, Mpi, StoreUrl, opt
from autotune.cli.publish import waiting
from autotune.errors import UsageError
from autotune.publish.recheck import PAIRS, Recheck
from autotune.publish.undo import published
from autotune.publish.verify import (
    FileState,
    published_header,
)
from autotune.store import Store
from autotune.terminal.progress import Progress
from autotune.terminal.render import console, error_console, hanging, write_json
from autotune.wording import count, parse_duration
from runner.mpi.discover import find_library


def verify_published(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE...",
            help="Published files to check. Default: all that you have published.",
        ),
    ] = None,
    compare: Annotated[
        bool, opt("--compare/--no-compare", "Compare with the default again, by new runs.")
    ] = True,
    pairs: Annotated[
        int, opt("--pairs N", "Largest number of pairs of runs per program.", min=6, max=10_000)
    ] = PAIRS,
    budget: Annotated[
        str | None,
        opt(
            "--budget TIME", "Machine time per program, for example 90s or 10m. Default: no limit."
        ),
    ] = None,
    run_recorded: Annotated[
        bool,
        opt(
            "--run-recorded",
            "Run also command lines that are recorded in the published file only (no "
            "application or study of yours).",
        ),
    ] = False,
    spaces: Annotated[
        list[str] | None,
        opt(
            "--space NAME|FILE",
            "Space whose parameters the files may contain, in addition to the shipped "
            "spaces and your own. May be repeated.",
        ),
    ] = None,
    mpi: Mpi = None,
    guard: Guard = True,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Check published files: unchanged, obeyed by MPI, and still faster than the default.

    The exit code is 1 if a file is not in force or its gain is gone.  A comparison that was not
    made, or is not decided by the pairs that were measured, is no failure.
    """
    library = find_library(mpi)
    budget_s = None if budget is None else parse_duration(budget)
    paths = [f.expanduser().absolute() for f in files or ()]
    for path in paths:
        published_header(path)
    paths = paths or published()
    if not paths:
        raise UsageError(
            "no file is published; expected the names of published files, or publish one "
            "first with autotune publish"
        )
    quiet = json_out == "-"
    say = waiting(lambda words: error_console().print(words, markup=False))
    states = [look_at(path, library, spaces or (), say) for path in paths]
    if not quiet:
        _print_states(states)
    checks: list[Recheck] = []
    if compare and existing_publications(states):
        with Store.open(store) as opened, Progress(None, budget_s, quiet) as progress:
            checks = compare_again(
                states,
                library,
                opened,
                pairs=pairs,
                budget_s=budget_s,
                guard=guard,
                recorded=run_recorded,
                watch=progress,
            )
    failed = any(s.in_force is False for s in states) or any(c.failed for c in checks)
    if json_out:
        data = {
            "schema": "autotune-verified-1",
            "ok": not failed,
            "files": [s.to_json() for s in states],
            "comparisons": [c.to_json() for c in checks],
        }
        write_json(data, json_out)
    if not quiet:
        _print_checks(checks, pairs)
        bad = any(s.in_force is False and not s.refused for s in states)
        if bad or any(c.status == "gone" for c in checks):
            advice = "remove the file with autotune unpublish FILE, or search and publish again"
            console().print(advice, markup=False)
    if failed:
        raise typer.Exit(1)


def _print_states(states: list[FileState]) -> None:
    out = console()
    words = {True: "in force", False: "NOT in force", None: "unknown"}
    for state in states:
        said = "not checked" if state.refused else words[state.in_force]
        out.print(f"{said}: {state.path}", markup=False, soft_wrap=True)
        out.print(hanging("  ", state.why))


def _print_checks(checks: list[Recheck], most: int) -> None:
    """Print the comparisons; ``most`` is the largest number of pairs that was allowed."""
    out = console()
    for check in checks:
        words = check.words
        if check.status == "cannot be told":
            pairs = check.data.get("pairs", 0)
            more = "a larger --budget" if pairs < most else "--pairs N"
            words = f"with {count(pairs, 'pair')} ({words}); {more} allows more pairs"
        line = f"{check.status}: {check.source} on {check.program}: {words}"
        # Commands and paths are not wrapped, because they are made to be copied.
        out.print(line, markup=False, soft_wrap=check.status in ("not compared", "cannot be run"))
