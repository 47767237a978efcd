"""``autotune verify-published``: are published defaults in force, and still faster?"""

from __future__ import annotations

import time
from pathlib import Path

import typer

from autotune.api.publication_requests import VerifyRequest
from autotune.cli.options import JsonOut, Quiet, StoreUrl
from autotune.cli.requests import takes_request
from autotune.files import check_writable, write_text
from autotune.terminal.render import to_stderr, write_document
from autotune.terminal.verification import (
    print_nothing_published,
    print_problems,
    print_states,
    print_verification,
)


@takes_request
def verify_published(
    request: VerifyRequest,
    store: StoreUrl = None,
    quiet: Quiet = False,
    json_out: JsonOut = None,
) -> None:
    """Check published files: unchanged, obeyed by MPI, and still faster than the default.

    Each file is checked with the installed library that loads it.  The exit code is 1 if a file is
    not in force, has expired (it was proven with another version of the library), is unsafe (it
    gives wrong results with operations that do not commute), or its gain is gone.  It is 0 if no
    file is published, or if a comparison was not made or is not decided by the pairs that were
    measured.  --quiet prints one line for each file or comparison that is the reason for 1, and
    else nothing.
    """
    from autotune.api.verify import FileVerification
    from autotune.publish.openmetrics import metrics_text
    from autotune.publish.published_files import published
    from autotune.publish.verify import published_header
    from autotune.terminal.progress import Progress

    if request.metrics is not None:
        check_writable(Path(request.metrics))
    verification = FileVerification(request, (lambda note: None) if quiet else to_stderr)
    paths = [Path(file).expanduser().absolute() for file in request.files]
    for path in paths:
        published_header(path)
    is_silent = quiet or json_out == "-"
    states = verification.check_files(paths or published())
    if not is_silent:
        print_states(states)
    with Progress(None, request.budget_s, is_silent) as progress:
        result = verification.measure(store, progress)
    if request.metrics is not None:
        write_text(Path(request.metrics), metrics_text(result.document, time.time()))
    if write_document(result.document.to_json(), json_out):
        if quiet:
            print_problems(result)
        elif not states:
            print_nothing_published()
        else:
            print_verification(result, request.pairs)
    if not result.ok:
        raise typer.Exit(1)
