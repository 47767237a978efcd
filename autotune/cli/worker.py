"""``autotune worker``: take part in a study that somebody else began."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.options import StoreUrl
from autotune.errors import UsageError
from autotune.store import Store, Study
from autotune.study.trust import judge


def worker(
    study: Annotated[
        str, typer.Argument(metavar="STUDY", help="Its number, or the beginning of its hash.")
    ],
    guard: Annotated[
        bool | None,
        typer.Option(
            "--guard/--no-guard",
            help="Reject runs during which other processes were busy.  Default: as the study says.",
        ),
    ] = None,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Run what the study asks for, whoever wrote it there."),
    ] = False,
    store: StoreUrl = None,
) -> None:
    """Measure trials of a study together with its other workers.

    It runs what the study says, where that is signed with your own key (docs/security.md), and says
    what it would run where it is not.  It may end at any time: what it has finished is kept, and
    its last trial is taken over.
    """
    from autotune.cli import main

    with Store.open_existing(store) as opened:
        found = opened.find_study(study)
        verdict = judge(opened, found)
    if verdict is None:
        raise UsageError(
            f"study {found.hash[:12]} was not begun for several workers; begin it with autotune "
            "search --join, or with --scheduler"
        )
    if not (verdict.trusted or trust):
        raise UsageError(
            f"study {found.hash[:12]} asks for something that nobody is known to have meant: "
            f"{verdict.why}.\nNothing was run.  A worker would run{verdict.words}\nWhere that is "
            f"what you want: autotune worker {found.hash[:12]} --trust   (docs/security.md says "
            "how requests are trusted without it)"
        )
    if guard is not None and guard != found.key.guarded:
        raise UsageError(_other_guard(found))
    request, place = verdict.request, verdict.request.cwd
    if store and "://" not in store:
        store = str(Path(store).expanduser().absolute())  # It is said again in another directory.
    try:
        os.chdir(place)
    except OSError as problem:
        raise UsageError(
            f"cannot go to {place}, where the study began: {problem.strerror}"
        ) from None
    own = [
        "--join",
        "--of",
        found.hash,
        *(["--store", store] if store else []),
    ]
    code = main(request.with_options(own))
    if code:
        raise typer.Exit(code)


def _other_guard(study: Study) -> str:
    """Why a worker cannot measure otherwise than the others."""
    name = study.hash[:12]
    if study.key.guarded:
        return (
            f"study {name} is measured with the guard: a worker without it would leave nothing of "
            "it proven; leave --no-guard out"
        )
    return (
        f"study {name} was begun with --no-guard, and all of its workers measure without the "
        "guard; leave --guard out, or begin a study without --no-guard"
    )
