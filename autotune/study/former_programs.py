"""Studies that were begun when programs were told apart in another way.

Their keys hold :func:`~autotune.study.programs.former_hash`, which saw nothing of what a program
imports from elsewhere.  Such a study goes on where that hash is the same and the sources that it
did not see are as they were when the way changed (``former_sources.json``, never written again).
"""

from __future__ import annotations

import dataclasses
import json
from functools import lru_cache
from importlib import resources

from autotune.store import Store, StudyKey
from autotune.study.events import Note, Watcher, silent
from autotune.study.programs import code_hash, former_hash, uncovered
from autotune.study.target import Target

_FILE = "former_sources.json"
_LISTED = 3
DIGITS = 16
"""Of each source's hash in the file."""
CONTINUED = (
    "this study was begun by an older version, which identified programs in "
    "another way; its program has not changed"
)


def begun_key(store: Store, key: StudyKey, target: Target, watch: Watcher = silent) -> StudyKey:
    """The key under which the study is in the store: ``key``, or its former one.

    ``watch`` is told of a former study, and why it does not go on where it does not.
    """
    if store.has_study(key):
        return key
    before = former_hash(target.program)
    if before == key.app.program_hash:
        return key
    former = dataclasses.replace(key, app=dataclasses.replace(key.app, program_hash=before))
    if not store.has_study(former):
        return key
    changed = _changed(target)
    if not changed:
        watch(Note(CONTINUED))
        return former
    names = ", ".join(changed[:_LISTED])
    more = f" and {len(changed) - _LISTED} more" if len(changed) > _LISTED else ""
    watch(
        Note(
            f"study {former.hash[:12]} of the same command is not continued: it does not "
            f"identify {names}{more}, which may have changed since"
        )
    )
    return key


def has_study(store: Store, key: StudyKey, target: Target) -> bool:
    """Whether there is a study of this key, in its present or its former form."""
    return store.has_study(begun_key(store, key, target))


def _changed(target: Target) -> list[str]:
    """Sources that the former hash did not see and that are not known to be as they were."""
    known = _sources()
    return [
        name
        for name, path in uncovered(target.program, target.cwd).items()
        if known.get(name) != code_hash(path)[:DIGITS]
    ]


@lru_cache(maxsize=1)
def _sources() -> dict[str, str]:
    text = (resources.files("autotune.study") / _FILE).read_text(encoding="utf-8")
    return dict(json.loads(text))
