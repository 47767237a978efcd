"""A worker's part in a study: what it is asked for, and whether that may be carried out."""

from __future__ import annotations

import os
from typing import Any

from autotune.errors import UsageError
from autotune.store import Store, Study
from autotune.study.search_request import SearchRequest
from autotune.study.trust import judge

SCHEMA = "autotune-worker-1"
PROVES_ELSEWHERE = "proving_elsewhere"
"""How a worker ends whose search phase is over while another one proves."""


def ended_elsewhere(study: str) -> dict[str, Any]:
    """What such a worker writes as JSON; ``study`` is the study's hash."""
    return {"schema": SCHEMA, "status": PROVES_ELSEWHERE, "study": study}


def request_of(store: Store, found: Study, *, trust: bool, guard: bool | None) -> SearchRequest:
    """What a study asks its workers for, in its directory, which this process goes to.

    ``trust``: carry it out whoever wrote it.  ``guard``: what the worker was told, None for
    nothing.  Raises UsageError for a study without a request, for one that is not trusted, for
    another guard than the study's, and for a directory that is not here.
    """
    name = found.hash[:12]
    verdict = judge(store, found)
    if verdict is None:
        raise UsageError(
            f"study {name} was not begun for several workers; begin one with autotune "
            "search --join, or with --scheduler"
        )
    if not (verdict.trusted or trust):
        raise UsageError(
            f"the request of study {name} is not trusted: {verdict.why}.\nNothing was "
            f"run.  A worker would run{verdict.words}\nIf that is what you want: autotune "
            f"worker {name} --trust   (docs/security.md explains when requests are trusted "
            "without it)"
        )
    if guard is not None and guard != found.key.guarded:
        raise UsageError(_other_guard(name, found.key.guarded))
    place = verdict.request.cwd
    try:
        os.chdir(place)
    except OSError as problem:
        raise UsageError(
            f"cannot change to {place}, where the study was begun: {problem.strerror}"
        ) from None
    return verdict.request.search


def _other_guard(name: str, guarded: bool) -> str:
    """Why a worker cannot measure otherwise than the others."""
    if guarded:
        return (
            f"study {name} is measured with the guard, and a worker without it would make "
            "the proof invalid; leave --no-guard out"
        )
    return (
        f"study {name} was begun with --no-guard, and all of its workers measure "
        "without the guard; leave --guard out, or begin a new study"
    )
