"""The check of a results database, and of what rests on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from autotune.document import Document
from autotune.errors import AutotuneError, WorkError
from autotune.publish.foundations import (
    check_artifacts,
    check_foundations,
    listed_files,
)
from autotune.store import Store
from autotune.store.findings import StoreFinding
from autotune.store.integrity import unreadable
from autotune.store.location import locate
from autotune.study.trial_store import REUSED


class FoundFault(Document):
    """One fault: its code, a sentence, what to do, and its figures."""

    code: str
    words: str
    advice: str
    data: dict[str, Any]


class StoreCheck(Document):
    """The check of a results database and of what rests on it."""

    schema_: Literal["autotune-store-check-1"] = Field(
        default="autotune-store-check-1", alias="schema"
    )
    database: str
    """The path, or the URL without its password."""
    studies: int | None
    """Studies in the database; null if it cannot be read."""
    runs: int | None
    published: int
    """Published files that were looked at."""
    findings: list[FoundFault]


def check_store(place: str | None, quick: bool) -> StoreCheck:
    """Check the database, what published files rest on in it, and the stored results.

    ``quick``: see :func:`autotune.store.integrity.examine`. Raises UsageError if there is no such
    database, WorkError if it cannot be asked (locked, unreachable).
    """
    label = locate(place).label
    findings: list[StoreFinding] = []
    counts: list[int] | None = None
    paths = _published(findings)
    sources: set[str] = set()
    try:
        with Store.open_read_only(place) as store:
            label = store.label
            findings += store.examine(quick, REUSED)
            summaries = store.studies()
            counts = [len(summaries), sum(one.runs for one in summaries)]
            bases, sources = check_foundations(store, paths)
            findings += bases
    except AutotuneError as problem:
        if problem.code not in ("store.damaged", "store.unreadable"):
            raise
        if not findings:
            findings.append(unreadable(problem))
    findings += check_artifacts(sources)
    return StoreCheck(
        database=label,
        studies=None if counts is None else counts[0],
        runs=None if counts is None else counts[1],
        published=len(paths),
        findings=[
            FoundFault(code=f.code, words=f.words, advice=f.advice, data=dict(f.data))
            for f in findings
        ],
    )


def _published(findings: list[StoreFinding]) -> list[Path]:
    """The published files that are there; an unreadable list of them is a finding."""
    try:
        return listed_files()
    except WorkError as problem:
        findings.append(
            StoreFinding(
                "store.published_unknown",
                str(problem),
                "correct or remove the list; publishing begins a new one",
                {"code": problem.code},
            )
        )
        return []
