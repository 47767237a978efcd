"""What may go from a results database, and what has to stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field

from autotune.comparison.comparison_document import Answer
from autotune.document import Document
from autotune.errors import AutotuneError, UsageError, WorkError
from autotune.measurement.measured_study import WITHOUT_RESULT
from autotune.measurement.run_history import CONFIRM
from autotune.publish.foundations import (
    foundation,
    listed_files,
    studies_below,
)
from autotune.store import Store, StudyRecord, StudySummary
from autotune.store.model import MOVED
from autotune.store.pruning import PruneRule, StudyShare
from autotune.study.study_status import FINISHED
from runner.files.paths import exists

OUTPUTS, REJECTED = "outputs", "rejected"
KINDS = (OUTPUTS, REJECTED)
"""What ``--keep KIND=DAYS`` may name."""
_ENDED = frozenset({*FINISHED, *get_args(Answer), "not slower", WITHOUT_RESULT, MOVED})
"""Statuses of studies that no command continues by itself; any other one is unfinished."""
_LONGEST_DAYS = 36_500.0


class PrunedStudy(Document):
    """What goes of one study: rejected runs, and outputs of runs that stay."""

    study: int
    hash: str
    app: str
    rejected: int
    outputs: int
    bytes: int
    """Bytes of text."""


class LeftStudies(Document):
    """Studies of which nothing goes, by the reason."""

    published: int
    unfinished: int


class StorePrune(Document):
    """What goes from a results database, or has gone."""

    schema_: Literal["autotune-store-prune-1"] = Field(
        default="autotune-store-prune-1", alias="schema"
    )
    database: str
    done: bool
    """False: this is only what would go."""
    keep: dict[str, float]
    """Days by kind; a kind that is missing stays whole."""
    studies: list[PrunedStudy]
    unnamed: int
    """Outputs that no run names."""
    bytes: int
    """Bytes of text of all that goes."""
    left: LeftStudies
    file_bytes: int | None
    """Bytes of the file before; null for a server."""
    file_bytes_after: int | None
    """Bytes of the file afterwards; null for a server, or if nothing was done."""
    compacted: bool | None
    """Whether the file was made smaller; null if that was not tried."""


def keep_days(rows: Sequence[str]) -> dict[str, float]:
    """The days of ``--keep KIND=DAYS``, by kind; raises UsageError for anything else."""
    days: dict[str, float] = {}
    for row in rows:
        kind, _, number = row.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if kind not in KINDS or not 0 <= value <= _LONGEST_DAYS or kind in days:
            raise UsageError(
                f"--keep {row!r} is not understood; expected outputs=DAYS or rejected=DAYS, each "
                "once, such as --keep outputs=90 --keep rejected=30",
                code="store.keep_syntax",
            )
        days[kind] = value
    return days


def prune_store(
    place: str | None, keep: Mapping[str, float], published: Sequence[Path], carry_out: bool
) -> StorePrune:
    """Remove old outputs and rejected runs, or only say what would go (``carry_out`` false).

    ``published``: published files that are not on this user's list. Nothing goes of a study that
    is unfinished, or on which a published file rests; on a server, where others publish, too, of
    none that recommends a setting. Raises WorkError if it cannot be told what a published file
    rests on.
    """
    opened = Store.open_existing(place) if carry_out else Store.open_to_read(place)
    with opened as store:
        summaries = store.studies()
        by_number = {one.id: one for one in summaries}
        base = _resting(store, summaries, published)
        unfinished = _unfinished(store, summaries) - base
        rule = PruneRule(
            outputs_days=keep.get(OUTPUTS),
            rejected_days=keep.get(REJECTED),
            protected=frozenset(base | unfinished),
            proof=CONFIRM,
        )
        size = store.size
        pruned = store.prunable(rule)
        is_done, after, is_compacted = False, None, None
        if carry_out:
            pruned, is_done = store.prune(rule, pruned), True
            if size is not None:
                is_compacted = store.compact()
                after = store.size
        return StorePrune(
            database=store.label,
            done=is_done,
            keep=dict(keep),
            studies=[_row(share, by_number[share.study]) for share in pruned.studies],
            unnamed=pruned.unnamed,
            bytes=pruned.bytes,
            left=LeftStudies(published=len(base), unfinished=len(unfinished)),
            file_bytes=size,
            file_bytes_after=after,
            compacted=is_compacted,
        )


def _row(share: StudyShare, study: StudySummary) -> PrunedStudy:
    return PrunedStudy(
        study=share.study,
        hash=study.hash[:12],
        app=study.app,
        rejected=share.rejected,
        outputs=share.outputs,
        bytes=share.bytes,
    )


def _resting(store: Store, studies: Sequence[StudySummary], further: Sequence[Path]) -> set[int]:
    """Ids of the studies on which published files rest."""
    roots: list[StudyRecord] = []
    if store.size is None:
        numbers = [one.id for one in studies if one.status == "recommended"]
        roots += store.study_records(numbers)
    missing = [path for path in further if not exists(path)]
    if missing:
        raise UsageError(
            f"{missing[0]} does not exist; --published names a published file",
            code="published.missing",
        )
    for path in listed_files(further):
        try:
            idents = foundation(path).studies
        except AutotuneError as problem:
            raise WorkError(
                f"it cannot be told on what the published file {path} rests, so nothing was "
                f"removed [{problem.code}]: {problem}\n"
                "To list all such files:  autotune store check",
                code="store.published_unknown",
            ) from None
        hashes = [one.hash for one in studies for ident in idents if one.hash.startswith(ident)]
        roots += [store.find_study(found) for found in hashes]
    return {one.id for root in roots for one in studies_below(store, root)}


def _unfinished(store: Store, studies: Sequence[StudySummary]) -> set[int]:
    """Ids of the studies that a command may continue, or on which a worker is at work now."""
    running, with_roles = store.busy_studies()
    at_work = {n for n in with_roles if any(not w.is_lost for w in store.workers(n))}
    roots = [one.id for one in studies if one.status not in _ENDED]
    roots += sorted(running | at_work)
    return {one.id for root in store.study_records(roots) for one in studies_below(store, root)}
