"""Watches the first run of a process in a study, and stops the study if later runs resume it."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from autotune.store import Store
from autotune.study.first_run import DOCUMENT, LATER, FirstRun, resumed_error
from autotune.study.run_history import DEFAULT_KEY, HistoryEntry, RunHistory
from autotune.study.trial_store import history_of
from autotune.targets.target import Target
from autotune.targets.written_files import FileLook, look, written


class FirstRunWatch:
    """Looks at the files around the first run, and at the CPU time of the next runs of its setting.

    The first run of a process is one of the setting with which all others are compared. A run that
    compiled code or failed is followed by another first run.
    """

    def __init__(self, target: Target, history: RunHistory, store: Store, study_id: int) -> None:
        self._target = target
        self._history = history
        self._store = store
        self._study_id = study_id
        self._before: FileLook | None = None
        self._key: str | None = None
        self._settled = False

    def before_run(self) -> None:
        """Look at the files before the first run.

        Raises WorkError if an earlier process found that later runs resume its first one, in this
        study or in one of the same command.
        """
        if self._before is not None:
            return
        _refuse_all(self._history)
        if not self._history.entries:
            for study in self._store.of_same_command(self._study_id):
                # Its first run may have changed a file among the arguments, and so the study key.
                _refuse_all(history_of(self._store, study))
        self._before = look(self._target.cwd, self._target.program[1:])

    def after_run(self, entry: HistoryEntry) -> None:
        """Look at the files after the first run, and store what it wrote."""
        if self._key is not None or self._before is None:
            return
        if entry.record.exit_code != 0 or entry.record.has_compiled:
            return
        self._key = entry.key
        cwd = self._target.cwd
        found = written(cwd, self._before, look(cwd, self._target.program[1:]))
        first = FirstRun(
            entry.order,
            found.created,
            found.changed,
            found.cut,
            found.seconds,
            prepared=bool(self._target.before) or self._target.fresh_copy,
        )
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        self._store.store_document(
            self._study_id, f"{DOCUMENT}{stamp}:{os.getpid()}", first.to_json()
        )
        self._history.first_runs.append(first)

    def judge(self, entry: HistoryEntry) -> None:
        """Judge by the first later runs; raises WorkError if both signs are there."""
        if self._settled or entry.key != self._key:
            return
        order = self._history.first_runs[-1].order
        later = [e for e in self._history.entries if e.key == self._key and e.order > order]
        if len([e for e in later if e.record.exit_code == 0]) < LATER:
            return
        self._settled = True
        _refuse(self._history, entry.key)


def _refuse_all(history: RunHistory) -> None:
    """Raise WorkError if later runs of a history resume one of its first runs."""
    earlier = {first.order for first in history.first_runs}
    for key in {entry.key for entry in history.entries if entry.order in earlier}:
        _refuse(history, key)


def _refuse(history: RunHistory, key: str) -> None:
    firsts = history.first_runs
    longer = history.longer_first(key)
    if longer is not None and any(first.files for first in firsts):
        who = "the default" if key == DEFAULT_KEY else key
        raise resumed_error(longer, firsts, who)
