"""``autotune worker``: takes part in a study that another process began."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from autotune.cli import options as o
from autotune.cli.options import opt
from autotune.cli.search import run_search, watch
from autotune.files import check_writable


def worker(
    study: o.StudyName,
    guard: Annotated[
        bool | None,
        opt(
            "--guard/--no-guard",
            "Reject runs during which other processes used the machine. Default: as in the study.",
        ),
    ] = None,
    trust: Annotated[
        bool,
        opt("--trust", "Run the study's program even if the study is not signed with your key."),
    ] = False,
    store: o.StoreUrl = None,
    json_out: o.JsonOut = None,
) -> None:
    """Measure trials of a study together with its other workers.

    The worker runs the study's program if the study is signed with your own key
    (docs/explanation/security.md);
    otherwise it only shows what it would run.  A worker may be ended at any time: its finished runs
    are stored, and another worker takes over its last trial.
    """
    from autotune.api.search import begin_search
    from autotune.api.workers import request_of
    from autotune.store import Store

    # The worker changes to the study's directory, so paths given here are made absolute first.
    if store and "://" not in store:
        store = str(Path(store).expanduser().absolute())
    if json_out not in (None, "-"):
        json_out = str(Path(str(json_out)).absolute())
        check_writable(Path(json_out))
    with Store.open_existing(store) as database:
        record = database.find_study(study)
        request = request_of(database, record, trust=trust, guard=guard)
    with Store.open(store) as database:
        progress = watch(request, json_out)
        search_study = begin_search(request, database, join=True, of=record.hash, watch=progress)
        run_search(search_study, progress, json_out, command=False)
