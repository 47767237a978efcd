"""``autotune worker``: take part in a study that somebody else began."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from autotune.cli.options import StoreUrl
from autotune.errors import UsageError
from autotune.store import Store


def worker(
    study: Annotated[
        str, typer.Argument(metavar="STUDY", help="Its number, or the beginning of its hash.")
    ],
    guard: Annotated[
        bool,
        typer.Option(
            "--guard/--no-guard", help="Reject runs during which other processes were busy."
        ),
    ] = True,
    store: StoreUrl = None,
) -> None:
    """Measure trials of a study together with its other workers.

    It may end at any time: what it has finished is kept, and its last trial is taken over.
    """
    from autotune.cli import main

    with Store.open(store) as opened:
        found = opened.find_study(study)
    request = found.request
    if request is None:
        raise UsageError(
            f"study {found.hash[:12]} was not begun for several workers; begin it with autotune "
            "search --join, or with --scheduler"
        )
    words = [str(word) for word in request["argv"]]
    place = str(request["cwd"])
    try:
        os.chdir(place)
    except OSError as problem:
        raise UsageError(
            f"cannot go to {place}, where the study began: {problem.strerror}"
        ) from None
    end = words.index("--") if "--" in words else len(words)
    own = [
        "--join",
        "--of",
        found.hash,
        *(["--store", store] if store else []),
        *([] if guard else ["--no-guard"]),
    ]
    code = main(["search", *words[:end], *own, *words[end:]])
    if code:
        raise typer.Exit(code)
