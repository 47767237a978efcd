"""A study that was begun on another kind of machine than it is measured on: a login node's.

A study's key holds the machine.  The first worker to start on a compute node therefore begins a
study of that node's own, and the one begun before, without a single trial, points to it.
"""

from __future__ import annotations

import dataclasses

from autotune.errors import UsageError
from autotune.store import Store, Study, StudyKey

MOVED = "moved"
"""Status of a study that was begun elsewhere; its result names the study that is measured."""
_FOLLOWS_NODE = frozenset({"machine", "ranks", "cluster_hash", "space_hash", "conditions"})
"""Parts of a key that a node decides by what it has: its kind, and by default as many ranks."""


def follow(store: Store, study: Study) -> Study:
    """The study that is measured in place of ``study``: itself where it was not moved."""
    if study.status != MOVED or study.result is None:
        return study
    return store.find_study(str(study.result["to"]))


def belong(store: Store, begun: Study, own: Study) -> None:
    """Make sure that a worker whose key gives ``own`` works for ``begun``.

    Raises UsageError where it would measure something else.
    """
    measured = follow(store, begun)
    if measured.hash == own.hash:
        return
    unlike = measured.key.guarded != own.key.guarded  # A node has no part in that.
    different = {n for n, part in _parts(begun.key).items() if part != _parts(own.key)[n]}
    if (
        unlike
        or measured.id != begun.id
        or store.trials(begun.id)
        or not different <= _FOLLOWS_NODE
    ):
        raise UsageError(
            f"this worker would measure another study than {measured.hash[:12]}: it "
            f"differs in {', '.join(sorted(different))}; start workers on equal nodes, in "
            "the same environment"
        )
    store.set_result(begun.id, MOVED, {"to": own.hash})


def _parts(key: StudyKey) -> dict[str, object]:
    """By what counts of each: names and paths only describe."""
    return {
        f.name: getattr(part, "hash", part)
        for f in dataclasses.fields(key)
        for part in (getattr(key, f.name),)
        if f.name != "space_name"
    }
