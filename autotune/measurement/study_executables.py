"""Executables of a study: stored with it, and compared before its answer or its runs are used.

A study's key is made from the command line, before anything runs. What the ranks really run is
known after the first run. So several studies may have the same command: the first one, and one for
each later state of its executables. :func:`current_key` chooses the study of the present state.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from autotune.errors import WorkError
from autotune.notes import Note, Say, unheard
from autotune.store import Store, StudyKey, StudyRecord
from autotune.store.keys import EXECUTABLES, digest
from autotune.targets.executables import (
    HERE,
    PROGRAM,
    ExecutableChange,
    ExecutableFile,
    change_words,
    changes_of,
    executables_of,
    is_wrapped,
)
from runner.types import RunRecord

if TYPE_CHECKING:  # The commands that only read the files of a study start nothing.
    from autotune.targets.target import Target

_PREFIX = "executable:"
_DIGITS = 40
_CHANGED_BY_RUN = "changed-by-run"
"""Document of a study one of whose runs ran another content of a file that cannot be compared."""


def stored_executables(store: Store, study_id: int) -> list[ExecutableFile]:
    """The files that the ranks of a study ran, ordered by path; empty if none was seen."""
    documents = store.documents(study_id, _PREFIX).values()
    return sorted((ExecutableFile.from_json(one) for one in documents), key=lambda file: file.path)


def changed_executables(store: Store, study_id: int) -> list[ExecutableChange]:
    """Which files of a study are not what was measured, as the files or a later run show."""
    changes = changes_of(stored_executables(store, study_id))
    by_run = store.stored_document(study_id, _CHANGED_BY_RUN)
    if by_run is not None:
        changes += [ExecutableChange.from_json(row) for row in by_run.values()]
    return changes


def store_executables(
    store: Store, study_id: int, files: Sequence[ExecutableFile]
) -> list[ExecutableChange]:
    """Store files that the study does not have yet; returns those that it has with other content.

    The first content of a path stays. Copies of a program, which a wrapper makes for each run, are
    stored once.
    """
    stored_files = {file.path: file for file in stored_executables(store, study_id)}
    contents = {file.sha256 for file in stored_files.values()}
    changes = []
    for file in files:
        if file.path not in stored_files:
            if file.kind == PROGRAM and file.sha256 in contents:
                continue
            name = _PREFIX + hashlib.sha256(file.path.encode()).hexdigest()[:_DIGITS]
            document = store.store_document(study_id, name, file.to_json())
            stored_files[file.path] = ExecutableFile.from_json(document)
            contents.add(stored_files[file.path].sha256)
        before = stored_files[file.path].sha256
        if before != file.sha256:
            changes.append(ExecutableChange(file.path, before, file.path, file.sha256))
    if changes:
        rows = [change.to_json() for change in changes if stored_files[change.path].place != HERE]
        if rows:  # The files themselves will not show it.
            rows_by_number = {str(number): row for number, row in enumerate(rows)}
            store.store_document(study_id, _CHANGED_BY_RUN, rows_by_number)
    return changes


class ExecutableWatch:
    """Compares the files of each run of a study with those of its earlier runs."""

    def __init__(self, store: Store, study_id: int) -> None:
        self._store = store
        self._study = study_id
        self._files: set[ExecutableFile] = set()

    def check(self, record: RunRecord, target: Target) -> list[ExecutableChange]:
        """Store what a run shows for the first time; returns what differs from earlier runs."""
        if not record.executables:
            return []
        files = executables_of(record, target.program)
        fresh = [file for file in files if file not in self._files]
        if not fresh:
            return []
        changes = store_executables(self._store, self._study, fresh)
        if not changes:
            self._files.update(fresh)
        return changes


def change_error(changes: Sequence[ExecutableChange]) -> WorkError:
    """The error that ends a study whose program changes while it is measured."""
    return WorkError(
        f"the program changed while it was measured: {change_words(changes)}.\nRuns of two "
        "programs are not compared: this run does not count, and the study ends here. The same "
        "command begins a new study, of the program as it is then",
        code="study.program_changed",
    )


def current_key(store: Store, key: StudyKey, say: Say = unheard) -> StudyKey:
    """The key of the study of the executables as they are now.

    It is ``key`` if there is no such study yet, or if its executables are unchanged. Otherwise it
    is the key of the next study of the same command, and ``say`` is told if that is a new one.
    ``say`` is also told of executables that cannot be compared without a run.
    """
    study, changes = _first(store, key)
    while study is not None and changes:
        key = _next(key, changes)
        former, before = study, changes
        study, changes = _first(store, key)
        if study is None:
            say(changed_note(former, before))
    files = () if study is None else stored_executables(store, study.id)
    if paths := [file.path for file in files if file.place != HERE]:
        say(_unchecked_note(paths))
    return key


def _unchecked_note(paths: Sequence[str]) -> Note:
    return Note(
        "study.program_unchecked",
        "whether the program is the one that was measured cannot be told without a run: "
        f"{paths[0]} is a copy that was removed after its run, or a file in a container. If it was "
        "rebuilt, "
        "begin another study with --remeasure and another --seed",
        {"files": list(paths)},
    )


def changed_note(study: StudyRecord, changes: Sequence[ExecutableChange]) -> Note:
    """The note on a study whose program has changed."""
    return Note(
        "study.program_changed",
        f"the program has changed since study {study.hash[:12]} of the same command: "
        f"{change_words(changes)}; this is a new study",
        {"study": study.hash[:12], "files": [change.to_json() for change in changes]},
    )


def unseen_notes(store: Store, study_id: int, target: Target) -> list[Note]:
    """A note if the executables behind a wrapper are not known."""
    if stored_executables(store, study_id) or not is_wrapped(target.program, target.cwd):
        return []
    return [
        Note(
            "study.program_unseen",
            f"what {target.program[0]} starts was not seen in any run: if it is rebuilt, this "
            "study does not notice it",
        )
    ]


def _first(store: Store, key: StudyKey) -> tuple[StudyRecord | None, list[ExecutableChange]]:
    if not store.has_study(key):
        return None, []
    study = store.study(key)
    return study, changed_executables(store, study.id)


def _next(key: StudyKey, changes: Sequence[ExecutableChange]) -> StudyKey:
    """The key of the study that follows the one of ``key``: a function of both and the present
    content, so that every process finds the same one."""
    before = key.conditions.get(EXECUTABLES, "")
    state = digest(
        [before, [[change.path, change.now_path, change.now_sha256] for change in changes]]
    )
    return dataclasses.replace(key, conditions={**key.conditions, EXECUTABLES: state})
