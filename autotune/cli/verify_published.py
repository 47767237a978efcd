"""``autotune verify-published``: are published defaults in force, and still better?  For cron."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.options import Guard, JsonOut, Mpi, StoreUrl
from autotune.cli.progress import Progress
from autotune.cli.publish import waiting
from autotune.cli.render import console, error_console, write_json
from autotune.config.cluster import load_cluster
from autotune.errors import UsageError
from autotune.publish.probe import Prober
from autotune.publish.record import published
from autotune.publish.verify import (
    FileState,
    Recheck,
    look,
    publications,
    published_header,
    recheck,
)
from autotune.store import Store
from autotune.study.duration import parse_duration
from runner.lock import MachineLock
from runner.mpi.discover import find
from runner.mpi.library import Library

PAIRS = 12


def verify_published(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE...", help="Default: all that you have published."),
    ] = None,
    compare: Annotated[
        bool,
        typer.Option("--compare/--no-compare", help="Measure again against the default."),
    ] = True,
    pairs: Annotated[
        int, typer.Option("--pairs", metavar="N", min=6, help="Pairs for each program.")
    ] = PAIRS,
    budget: Annotated[
        str | None,
        typer.Option("--budget", metavar="TIME", help="Machine time for each program: 90s, 10m."),
    ] = None,
    mpi: Mpi = None,
    guard: Guard = True,
    store: StoreUrl = None,
    json_out: JsonOut = None,
) -> None:
    """Check published files: untouched, obeyed, and still better than the default.

    Exit code 1 where one is not in force or no longer better; an open comparison is no failure.
    """
    library = find(mpi)
    budget_s = None if budget is None else parse_duration(budget)
    paths = [f.expanduser().absolute() for f in files or ()]
    for path in paths:
        published_header(path)
    paths = paths or published()
    if not paths:
        raise UsageError("nothing is published yet; name the files, or see autotune publish")
    quiet = json_out == "-"
    states = [_look(path, library) for path in paths]
    if not quiet:
        _print_states(states)
    checks: list[Recheck] = []
    if compare and all(s.in_force is not False for s in states):
        checks = _compare(states, library, store, pairs, budget_s, guard, quiet)
    failed = any(s.in_force is False for s in states) or any(c.lost for c in checks)
    if json_out:
        data = {
            "schema": "autotune-verified-1",
            "ok": not failed,
            "files": [s.to_json() for s in states],
            "comparisons": [c.to_json() for c in checks],
        }
        write_json(data, json_out)
    if not quiet:
        _print_checks(checks, failed)
    if failed:
        raise typer.Exit(1)


def _look(path: Path, library: Library) -> FileState:
    """Each file is loaded under the cluster it is for; one that is gone needs none."""
    try:
        name = published_header(path).cluster
    except UsageError:
        name = "local"
    say = waiting(lambda words: error_console().print(words, markup=False))
    lock = MachineLock("shared", on_wait=say)
    with lock, Prober(library, load_cluster(name)) as prober:
        return look(path, prober)


def _compare(
    states: list[FileState],
    library: Library,
    store: str | None,
    pairs: int,
    budget_s: float | None,
    guard: bool,
    quiet: bool,
) -> list[Recheck]:
    found: list[Recheck] = []
    clusters = {s.header.evidence.source: s.header.cluster for s in states if s.header}
    with Store.open(store) as opened:
        for source, (evidence, content) in publications(states).items():
            with Progress(None, budget_s, quiet) as progress:
                found += recheck(
                    evidence,
                    content,
                    load_cluster(clusters[source]),
                    library,
                    opened,
                    pairs=pairs,
                    budget_s=budget_s,
                    guard=guard,
                    watch=progress,
                )
    return found


def _print_states(states: list[FileState]) -> None:
    out = console()
    words = {True: "in force", False: "NOT in force", None: "unknown"}
    for state in states:
        out.print(f"{words[state.in_force]}: {state.path}", markup=False, soft_wrap=True)
        out.print(f"  {state.why}", markup=False)


def _print_checks(checks: list[Recheck], failed: bool) -> None:
    out = console()
    words = {"better": "still better", "worse": "WORSE", "equivalent": "no longer better"}
    for check in checks:
        verdict = words.get(check.outcome, "open")
        out.print(f"{verdict}: {check.source} on {check.program}: {check.words}", markup=False)
    if failed:
        out.print(
            "take it away with autotune unpublish FILE, or search and publish again", markup=False
        )
