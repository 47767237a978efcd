"""``autotune worker``: take part in a study that somebody else began."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autotune.api.search import Search
from autotune.api.worker import request_of
from autotune.cli import options as o
from autotune.cli.conducted import conduct, watch
from autotune.cli.options import opt
from autotune.files import check_writable
from autotune.store import Store


def worker(
    study: Annotated[
        str, typer.Argument(metavar="STUDY", help="Its number, or the beginning of its hash.")
    ],
    guard: Annotated[
        bool | None,
        opt(
            "--guard/--no-guard",
            "Reject runs during which other processes were busy.  Default: as the study says.",
        ),
    ] = None,
    trust: Annotated[
        bool, opt("--trust", "Run what the study asks for, whoever wrote it there.")
    ] = False,
    store: o.StoreUrl = None,
    json_out: o.JsonOut = None,
) -> None:
    """Measure trials of a study together with its other workers.

    It runs what the study says, where that is signed with your own key (docs/security.md), and says
    what it would run where it is not.  It may end at any time: what it has finished is kept, and
    its last trial is taken over.
    """
    # The study says in which directory it is measured: what is named from here is found from there.
    if store and "://" not in store:
        store = str(Path(store).expanduser().absolute())
    if json_out not in (None, "-"):
        json_out = str(Path(str(json_out)).absolute())
        check_writable(Path(json_out))
    with Store.open_existing(store) as opened:
        found = opened.find_study(study)
        asked = request_of(opened, found, trust=trust, guard=guard)
    with Store.open(store) as opened:
        progress = watch(asked, json_out)
        begun = Search(asked, opened, join=True, of=found.hash, watch=progress)
        conduct(begun, progress, json_out, command=False)
