"""``autotune verify-published``: are published defaults in force, and still faster?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.options import JsonOut, StoreUrl, opt
from autotune.cli.requests import Guard, Mpi
from autotune.errors import UsageError
from autotune.notes import Note
from autotune.publish.recheck import PAIRS
from autotune.terminal.render import print_line, print_message, write_json
from autotune.terminal.verification import print_checks, print_expired, print_renewals, print_states
from autotune.wording import parse_duration

if TYPE_CHECKING:
    from autotune.publish.recheck import Recheck


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
    renewing: Annotated[
        bool,
        opt(
            "--renew",
            "Accept expired files whose gain is measured again: they count as proven with the "
            "installed version of the library.",
        ),
    ] = False,
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

    The exit code is 1 if a file is not in force, has expired (it was proven with another version
    of the library), is unsafe (it gives wrong results with operations that do not commute), or its
    gain is gone.  A comparison that was not made, or is not decided by the pairs that were
    measured, is no failure.
    """
    from autotune.api.verify import VerifyResult, look_at
    from autotune.publish.published_files import published, remember_verifications
    from autotune.publish.recheck import recheck, renew
    from autotune.publish.verify import publications, published_header
    from autotune.store import Store
    from autotune.terminal.progress import Progress
    from runner.mpi.discover import find_library

    if renewing and not compare:
        raise UsageError(
            "--renew needs the comparison; expected it without --no-compare",
            code="usage.not_applicable",
        )
    library = find_library(mpi)
    budget_s = None if budget is None else parse_duration(budget)
    paths = [f.expanduser().absolute() for f in files or ()]
    for path in paths:
        published_header(path)
    paths = paths or published()
    if not paths:
        raise UsageError(
            "no file is published; expected the names of published files, or publish one "
            "first with autotune publish",
            code="published.none",
        )
    quiet = json_out == "-"

    def say(note: Note) -> None:
        print_message(note.words)

    states = [look_at(path, library, spaces or (), say) for path in paths]
    if not quiet:
        print_states(states)
    checks: list[Recheck] = []
    if compare and publications(states):
        with Store.open(store) as opened, Progress(None, budget_s, quiet) as progress:
            checks = recheck(
                states,
                library,
                opened,
                pairs=pairs,
                budget_s=budget_s,
                guard=guard,
                recorded=run_recorded,
                watch=progress,
            )
    remember_verifications(VerifyResult(states, checks).verifications())
    renewals = renew(states, checks, library, say) if renewing else []
    result = VerifyResult(states, checks, renewals)
    if json_out:
        write_json(result.document.to_json(), json_out)
    if not quiet:
        print_checks(checks, pairs)
        print_renewals(renewals)
        print_expired(result.lost)
        out = any(not (s.refused or s.expiry) for s in result.lost)
        if out or any(c.status in ("gone", "contradicted") for c in checks):
            advice = "remove the file with autotune unpublish FILE, or search and publish again"
            print_line(advice)
    if not result.ok:
        raise typer.Exit(1)
