"""``autotune verify-published``: are published defaults in force, and still faster?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from autotune.api.publication_requests import VerifyRequest
from autotune.cli.options import JsonOut, StoreUrl
from autotune.cli.requests import takes_request
from autotune.errors import UsageError
from autotune.terminal.render import to_stderr, write_document
from autotune.terminal.verification import print_states, print_verification

if TYPE_CHECKING:
    from autotune.publish.recheck import Recheck


@takes_request
def verify_published(
    request: VerifyRequest, store: StoreUrl = None, json_out: JsonOut = None
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
    from autotune.publish.usual_library import library_of_files
    from autotune.publish.verify import publications, published_header
    from autotune.store import Store
    from autotune.terminal.progress import Progress
    from runner.mpi.discover import find_library

    if request.renewing and not request.compare:
        raise UsageError(
            "--renew needs the comparison; expected it without --no-compare",
            code="usage.not_applicable",
        )
    named = None if request.mpi is None else find_library(request.mpi)
    paths = [Path(file).expanduser().absolute() for file in request.files]
    for path in paths:
        published_header(path)
    paths = paths or published()
    if not paths:
        raise UsageError(
            "no file is published; expected the names of published files, or publish one "
            "first with autotune publish",
            code="published.none",
        )
    library = named or library_of_files(paths)
    quiet = json_out == "-"

    states = [look_at(path, library, request.spaces, to_stderr) for path in paths]
    if not quiet:
        print_states(states)
    checks: list[Recheck] = []
    if request.compare and publications(states):
        with Store.open(store) as database, Progress(None, request.budget_s, quiet) as progress:
            checks = recheck(
                states,
                library,
                database,
                pairs=request.pairs,
                budget_s=request.budget_s,
                guard=request.guard,
                run_recorded=request.run_recorded,
                watch=progress,
            )
    remember_verifications(VerifyResult(states, checks).verifications())
    renewals = renew(states, checks, library, to_stderr) if request.renewing else []
    result = VerifyResult(states, checks, renewals)
    if write_document(result.document.to_json(), json_out):
        print_verification(result, request.pairs)
    if not result.ok:
        raise typer.Exit(1)
