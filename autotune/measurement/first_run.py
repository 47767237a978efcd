"""First runs: signs that later runs of a program continue from files of the first one.

A program that finds its own checkpoint does less work, or none. Then all runs after the first one
are short, and a comparison of settings compares nothing. Two signs show it: the first run of a
setting used a multiple of the CPU time of its later ones, and the first run of all wrote a file.
Either alone is usual: caches fill, and programs write results. Both together stop a proof.

:class:`FirstRunWatch` looks at the first run of a process in a study, and stops the study if later
runs resume it.
"""

from __future__ import annotations

import itertools
import os
import shlex
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from autotune.errors import WorkError
from autotune.measurement.run_history import (
    DEFAULT_KEY,
    FIRST_RUN,
    FirstRun,
    HistoryEntry,
    RunHistory,
    history_of,
)
from autotune.notes import Note
from autotune.store import Store
from autotune.targets.target import Target
from autotune.targets.written_files import FileLook, compare_looks, look
from autotune.wording import count, seconds
from runner.types import RunRecord

MULTIPLE = 2.0
"""The first run is longer if it used this multiple of the CPU time of later ones, ..."""
LEAST_S = 0.3
"""... and at least these CPU seconds more (the start of a launch differs by less), ..."""
CHANGE = 1.5
"""... and the program's own figure, if it prints one, differs by this factor."""
LEAST_RUNS = 2
"""Number of later runs from which the first one is judged."""
_SHOWN_PATHS = 3


@dataclass(frozen=True)
class LongerFirst:
    """A first run that used a multiple of the CPU time of later ones, in seconds."""

    first_s: float
    later_s: float

    @property
    def data(self) -> dict[str, Any]:
        """The figures of a note."""
        return {"first_cpu_s": self.first_s, "later_cpu_s": self.later_s}

    @property
    def words(self) -> str:
        """The figures as the second part of a sentence."""
        return (
            f"used {seconds(self.first_s)} of CPU time, and later ones use {seconds(self.later_s)}"
        )


def longer_first(first: RunRecord, followers: Iterable[RunRecord]) -> LongerFirst | None:
    """Whether a first run did more work than later ones of the same setting.

    Runs that did not end by themselves are left out. None also if there are too few.
    """
    others = [record for record in followers if record.exit_code == 0]
    if first.exit_code != 0 or len(others) < LEAST_RUNS:
        return None
    usual_s = statistics.median(record.cpu_s for record in others)
    if first.cpu_s < MULTIPLE * usual_s or first.cpu_s - usual_s < LEAST_S:
        return None
    figures = [record.metric_s for record in others if record.metric_s is not None]
    if first.metric_s is not None and len(figures) == len(others):
        figure = statistics.median(figures)
        # A figure that stays the same is not that of the work that the first run did alone.
        if min(figure, first.metric_s) > 0 and (1 / CHANGE < figure / first.metric_s < CHANGE):
            return None
    return LongerFirst(first.cpu_s, usual_s)


def resumed_note(longer: LongerFirst, firsts: Sequence[FirstRun], who: str) -> Note:
    """Both signs: the objection to ``who``, which names a setting."""
    files = _files(firsts)
    words = (
        f"the first run of {who} {longer.words}; the program wrote {_first_paths(files)}, "
        "from which "
        "later runs may continue, so they may not do the whole work. Let every run begin with "
        f"the same files: {remedy(firsts)}"
    )
    return Note("work.resumed", words, {**longer.data, "files": files, "of": who})


def longer_note(longer: LongerFirst, who: str) -> Note:
    """The first sign alone."""
    words = f"the first run of {who} {longer.words}"
    return Note("work.first_run_longer", words, {**longer.data, "of": who})


def files_note(firsts: Sequence[FirstRun]) -> Note | None:
    """The second sign alone; None without it, and where the user prepares the files."""
    files = _files(firsts)
    if not files or any(first.prepared for first in firsts):
        return None
    words = (
        f"the first run wrote {_first_paths(files)}; if the program continues from such "
        "files, later "
        f"runs do less work: {remedy(firsts)}"
    )
    return Note("work.files_written", words, {"files": files, "cut": any(f.cut for f in firsts)})


def resumed_error(longer: LongerFirst, firsts: Sequence[FirstRun], default: str) -> WorkError:
    """Both signs for what everything is compared with: nothing can be measured."""
    return WorkError(
        f"the program does not do the same work in each run: its first run with {default} "
        f"{longer.words}, and it wrote {_first_paths(_files(firsts))}, from which later runs may "
        f"continue.\nLet every run begin with the same files: {remedy(firsts)}.\nIf the first run "
        "only filled a cache that all later runs use, leave the cache in place and begin another "
        "study (--seed N)",
        code="work.resumed",
    )


def remedy(firsts: Sequence[FirstRun]) -> str:
    """The options that let every run begin with the same files."""
    paths = list(dict.fromkeys(path for first in firsts for path in first.created))
    removes = shlex.join(["rm", "-f", *paths[:_SHOWN_PATHS]]) if paths else "COMMAND"
    argument = shlex.quote(removes) if paths else removes
    return f"--before {argument} (before each run), or --fresh-dir DIR (a copy of DIR for each run)"


def _files(firsts: Sequence[FirstRun]) -> list[str]:
    return list(dict.fromkeys(itertools.chain.from_iterable(first.files for first in firsts)))


def _first_paths(files: Sequence[str]) -> str:
    more = len(files) - _SHOWN_PATHS
    paths = ", ".join(files[:_SHOWN_PATHS])
    return f"{paths} and {count(more, 'more file')}" if more > 0 else paths


def longer_first_of(history: RunHistory, key: str) -> LongerFirst | None:
    """Whether the first run of a setting, in any process, did more work than later ones."""
    entries = [entry for entry in history.entries if entry.key == key]
    orders = {first.order for first in history.first_runs}
    counting_entries = [entry for entry in entries if entry.counts]
    # A first run may be a warm-up, or be rejected for foreign load: the program ran all the
    # same. One that compiled code is neither a first run of a process nor does it count.
    for first in [entry for entry in entries if entry.order in orders] or counting_entries[:1]:
        followers = [
            entry.record
            for entry in counting_entries
            if entry.order > first.order and entry.record.place == first.record.place
        ]
        if (longer := longer_first(first.record, followers)) is not None:
            return longer
    return None


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
        self._has_verdict = False

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
        change = compare_looks(cwd, self._before, look(cwd, self._target.program[1:]))
        first = FirstRun(
            entry.order,
            change.created,
            change.changed,
            change.cut,
            change.seconds,
            prepared=bool(self._target.before) or self._target.fresh_copy,
        )
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        self._store.store_document(
            self._study_id, f"{FIRST_RUN}{stamp}:{os.getpid()}", first.to_json()
        )
        self._history.first_runs.append(first)

    def judge(self, entry: HistoryEntry) -> None:
        """Judge by the first later runs; raises WorkError if both signs are there."""
        if self._has_verdict or entry.key != self._key:
            return
        order = self._history.first_runs[-1].order
        followers = [e for e in self._history.entries if e.key == self._key and e.order > order]
        if len([e for e in followers if e.record.exit_code == 0]) < LEAST_RUNS:
            return
        self._has_verdict = True
        _refuse(self._history, entry.key)


def _refuse_all(history: RunHistory) -> None:
    """Raise WorkError if later runs of a history resume one of its first runs."""
    earlier = {first.order for first in history.first_runs}
    for key in {entry.key for entry in history.entries if entry.order in earlier}:
        _refuse(history, key)


def _refuse(history: RunHistory, key: str) -> None:
    firsts = history.first_runs
    longer = longer_first_of(history, key)
    if longer is not None and any(first.files for first in firsts):
        who = "the default" if key == DEFAULT_KEY else key
        raise resumed_error(longer, firsts, who)
