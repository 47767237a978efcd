"""The store: the interface to studies, trials and runs for the rest of autotune."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from sqlalchemy import URL

from autotune.errors import UsageError
from autotune.store import (
    backup,
    integrity,
    listing,
    migrate,
    postgresql,
    pruning,
    runs,
    studies,
    trials,
)
from autotune.store.backup import Backup
from autotune.store.database import BUSY_TIMEOUT_S, Database
from autotune.store.findings import StoreFinding
from autotune.store.keys import StudyKey
from autotune.store.listing import StudyPage, StudyQuery
from autotune.store.location import VARIABLE, locate, only_readable, snapshot
from autotune.store.model import (
    MOVED,
    StoredRun,
    StudyRecord,
    StudySummary,
    TrialDraft,
    TrialRecord,
    Value,
)
from autotune.store.pruning import Pruned, PruneRule
from autotune.store.row_checks import Damage
from autotune.store.study_figures import StudyFigures
from autotune.store.workers import WorkerClaims
from runner.files.paths import exists, is_file
from runner.files.scratch import Scratch
from runner.types import RunRecord


class Store(StudyFigures, WorkerClaims):
    """The results database; every method is one transaction.

    A returned method's changes are durable; a method that raises changes nothing. Methods raise
    UsageError for an unknown study or trial, and WorkError if the database fails (locked for too
    long, disk full, server not reachable). Several threads may use one store, and several processes
    one database. A store must not be used after a fork.
    """

    def __init__(self, database: Database, backup: Path | None = None) -> None:
        super().__init__(database)
        self._copy: Scratch | None = None
        self.backup = backup
        """Backup of the file if opening migrated it to a newer schema, else None."""

    @classmethod
    def open(
        cls,
        place: str | Path | None = None,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        tolerant: bool = False,
    ) -> Store:
        """Open a results database; it is created if it does not exist.

        ``place`` is a path, ``sqlite:///PATH`` or ``postgresql://...``; None means $AUTOTUNE_STORE,
        else ``$XDG_DATA_HOME/autotune/results.db``. ``busy_timeout_s``: seconds to wait for another
        process that writes. ``tolerant``: rows that autotune did not write are skipped and recorded
        in :attr:`damage`; else they raise WorkError. Raises UsageError for a place that cannot hold
        a database.
        """
        location = locate(None if place is None else str(place))
        database = Database(location, busy_timeout_s, tolerant=tolerant)
        try:
            return cls(database, migrate.prepare_schema(database))
        except BaseException:
            database.close()
            raise

    @classmethod
    def open_existing(cls, place: str | Path | None = None, tolerant: bool = False) -> Store:
        """Open a results database as :meth:`open`, for callers that only read.

        Raises UsageError if the named database does not exist; it is not created.
        """
        is_named = place is not None or VARIABLE in os.environ
        path = locate(None if place is None else str(place)).path
        if is_named and path is not None and not exists(path):
            raise UsageError(
                f"the results database {path} does not exist; check --store (or ${VARIABLE}).  "
                "A search creates it",
                code="store.missing",
            )
        return cls.open(place, tolerant=tolerant)

    @classmethod
    def open_to_read(cls, place: str | Path | None = None) -> Store:
        """Open an existing database, tolerant; copy a file that is not writable.

        The store then reads the copy, which has the present content. Writes to such a store are
        lost.
        """
        path = locate(None if place is None else str(place)).path
        if path is None or not only_readable(path):
            return cls.open_existing(place, tolerant=True)
        scratch, copy = snapshot(path)
        try:
            store = cls.open(copy, tolerant=True)
        except BaseException:
            scratch.close()
            raise
        store._copy = scratch
        store._database.label = str(path)
        return store

    @classmethod
    def open_read_only(cls, place: str | Path | None = None) -> Store:
        """Open an existing database so that nothing can write to it through this store.

        The database is never created or migrated. A file that is not writable is copied, as in
        :meth:`open_to_read`. Raises UsageError if there is no database of the present schema.
        """
        location = locate(None if place is None else str(place))
        path = location.path
        if path is not None and only_readable(path):
            return cls.open_to_read(place)
        if path is not None and not is_file(path):
            raise UsageError(
                f"the results database {path} does not exist; check --store (or ${VARIABLE}).  "
                "A search creates it",
                code="store.missing",
            )
        database = Database(location, read_only=True, tolerant=True)
        try:
            migrate.require_schema(database)
        except BaseException:
            database.close()
            raise
        return cls(database)

    @property
    def label(self) -> str:
        """The database's location for messages: a path, or a URL without its password."""
        return self._database.label

    @property
    def damage(self) -> Damage:
        """The damaged rows that were skipped."""
        return self._database.damage

    @property
    def url(self) -> URL:
        """The database's location, including the password; not for messages."""
        return self._database.url

    def check_place(self) -> None:
        """Raise WorkError if the database's file was deleted or replaced by another one.

        Its content is first saved to a new file, which the message names. Every method that writes
        does the same.
        """
        self._database.check_place()

    def close(self) -> None:
        """Close the database; a later use of the store raises."""
        self._database.close()
        if self._copy is not None:
            self._copy.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # the database as a whole

    def examine(self, quick: bool, reused: str) -> list[StoreFinding]:
        """What is wrong with the database, see :func:`autotune.store.integrity.examine`."""
        return integrity.examine(self._database, quick, reused)

    def prunable(self, rule: PruneRule) -> Pruned:
        """What :meth:`prune` would remove now; nothing is changed."""
        return pruning.plan(self._database, rule)

    def busy_studies(self) -> tuple[frozenset[int], frozenset[int]]:
        """Ids of the studies with running trials, and of those in which workers have roles."""
        return pruning.busy(self._database)

    def prune(self, rule: PruneRule, expected: Pruned) -> Pruned:
        """Remove what a rule lets go, of the studies of ``expected``; returns what has gone."""
        return pruning.prune(self._database, rule, expected)

    def compact(self) -> bool:
        """Give the space of removed rows back to the disk; False if other processes prevent it."""
        return self._database.compact()

    def back_up(self, path: Path) -> Backup:
        """Write a backup, see :func:`autotune.store.backup.back_up`; workers may write."""
        return backup.back_up(self._database, path)

    @property
    def size(self) -> int | None:
        """Bytes of the database's file and its log on the disk; None for a server."""
        return self._database.size

    # studies

    def study(self, key: StudyKey) -> StudyRecord:
        """The study of ``key``; it is created if it is new."""
        with self._database.write() as connection:
            self._database.dialect.lock(connection)
            return studies.get_or_create(connection, key)

    def get_study(self, study_id: int) -> StudyRecord:
        """The study with this id; raises UsageError if it does not exist."""
        with self._database.read() as connection:
            return studies.get(connection, study_id)

    def study_records(self, numbers: Sequence[int]) -> list[StudyRecord]:
        """The studies with these ids, in this order; unknown ids are left out."""
        with self._database.read() as connection:
            return studies.records(connection, numbers)

    def studies(self) -> list[StudySummary]:
        """Summaries of all studies, the newest first."""
        with self._database.read() as connection:
            return studies.summaries(connection)

    def study_page(self, query: StudyQuery) -> StudyPage:
        """One page of the studies that a query selects; filtered, sorted and limited in SQL."""
        with self._database.read() as connection:
            return listing.page(connection, query)

    def study_choices(self) -> dict[str, list[str]]:
        """The values that occur for each filter of :class:`StudyQuery`, in alphabetical order."""
        with self._database.read() as connection:
            return listing.choices(connection)

    def unfinished_studies(self, final_statuses: Collection[str], most: int) -> list[int]:
        """Ids of the newest studies, at most ``most``, without a final status."""
        with self._database.read() as connection:
            return listing.unfinished_ids(connection, final_statuses, most)

    def find_study(self, text: str) -> StudyRecord:
        """The study with this id, or whose hash begins with ``text`` (at least 4 characters).

        Raises UsageError, with the candidates, if no study or more than one fits.
        """
        with self._database.read() as connection:
            return studies.find(connection, text)

    def follow_moved(self, study: StudyRecord) -> StudyRecord:
        """The study that is measured in place of ``study``; ``study`` itself if there is none."""
        if study.status != MOVED or study.result is None:
            return study
        return self.find_study(str(study.result["to"]))

    def has_study(self, key: StudyKey) -> bool:
        """True if a study with exactly this key exists."""
        with self._database.read() as connection:
            return studies.has(connection, key)

    def comparisons(self, study_id: int) -> int:
        """Number of searches and comparisons of a study's program against its default, this one
        included.

        Each has its own error probability.
        """
        with self._database.read() as connection:
            return studies.comparisons(connection, study_id)

    def set_result(self, study_id: int, status: str, result: Mapping[str, Any] | None) -> None:
        """Store the status and result of a study; a later result replaces it."""
        with self._database.write() as connection:
            studies.set_result(connection, study_id, status, result)

    def change_request(
        self, study_id: int, change: Callable[[dict[str, Any] | None], Mapping[str, Any]]
    ) -> None:
        """Replace the JSON from which a worker of this study starts by the result of ``change``."""
        with self._database.write() as connection:
            studies.change_request(connection, study_id, change)

    def writers(self) -> frozenset[str]:
        """The roles of a PostgreSQL server that may write studies.

        Empty for a file: its writers are the users who may write the file.
        """
        if not isinstance(self._database.dialect, postgresql.Postgresql):
            return frozenset()
        with self._database.read() as connection:
            return postgresql.writers(connection)

    def store_document(
        self, study_id: int, name: str, document: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Store an immutable JSON document of a study; returns the stored document.

        If two processes store a document under the same name, the first one wins.
        """
        with self._database.write() as connection:
            studies.lock(connection, study_id)
            return studies.store_document(connection, study_id, name, document)

    def stored_document(self, study_id: int, name: str) -> dict[str, Any] | None:
        """The immutable document of this name; None if it does not exist."""
        with self._database.read() as connection:
            return studies.stored_document(connection, study_id, name)

    def documents(self, study_id: int, prefix: str) -> dict[str, dict[str, Any]]:
        """The immutable documents whose names start with ``prefix``, the oldest first."""
        with self._database.read() as connection:
            return studies.documents(connection, study_id, prefix)

    def keep_trace(self, key: StudyKey, features: Mapping[str, Any]) -> None:
        """Store the features (JSON) of a traced run of a study's program; replaces earlier ones."""
        with self._database.write() as connection:
            self._database.dialect.lock(connection)
            studies.keep_trace(connection, key.traced_as, features)

    def trace_features(self, key: StudyKey) -> dict[str, Any] | None:
        """The features of the last traced run of the program of a study; None if there is none."""
        with self._database.read() as connection:
            return studies.trace_features(connection, key.traced_as)

    def last_document(self, study_id: int, prefix: str) -> dict[str, Any] | None:
        """The document stored last whose name starts with ``prefix``; None if there is none."""
        with self._database.read() as connection:
            return studies.last_document(connection, study_id, prefix)

    def of_same_command(self, study_id: int) -> list[int]:
        """Ids of the failed studies of the same command whose files had other content.

        A file among a program's arguments is part of the study key.
        """
        with self._database.read() as connection:
            return studies.of_same_command(connection, study_id)

    # trials

    def add_trial(
        self,
        study_id: int,
        setting: Mapping[str, Value],
        key: str,
        attrs: Mapping[str, Any] | None = None,
        origin: str = "search",
    ) -> TrialRecord:
        """A new trial in the state "running", owned by this process, with the next number.

        ``attrs`` are JSON and come back unchanged. :meth:`beat` renews its lease.
        """
        draft = TrialDraft(setting, key, attrs or {})
        with self._database.write() as connection:
            studies.lock(connection, study_id)
            return trials.add(connection, self._database.dialect, study_id, draft, origin)

    def finish_trial(
        self,
        trial_id: int,
        state: str,
        estimate: float | None,
        attrs: Mapping[str, Any] | None = None,
        reason: str = "",
    ) -> TrialRecord:
        """Give a trial its state and estimate; ``attrs`` are added to the existing ones.

        This may be repeated: more runs of a setting give a new estimate.
        """
        with self._database.write() as connection:
            return trials.finish(connection, trial_id, state, estimate, attrs, reason)

    # runs

    def add_run(
        self,
        study_id: int,
        trial_id: int | None,
        phase: str,
        block: int | None,
        position: int | None,
        record: RunRecord,
        setting_key: str | None = None,
        order: int | None = None,
        launched: Mapping[str, Mapping[str, str]] | None = None,
    ) -> int:
        """Store one run, whatever its state; returns its id when the run is durable.

        ``setting_key`` is the launched setting; without it, the trial's setting, or the default if
        there is no trial either. ``order`` is the caller's count of runs. If it is taken or too
        low, the next free number is used, so that no run is lost. ``launched`` is the setting as
        native parameters (target -> name -> text).
        """
        with self._database.write() as connection:
            return runs.add(
                connection,
                study_id,
                trial_id,
                phase,
                block,
                position,
                record,
                setting_key,
                order,
                launched,
            )

    def runs(
        self,
        study_id: int,
        *,
        trial_id: int | None = None,
        setting_key: str | None = None,
        phases: Collection[str] | None = None,
        states: Collection[str] | None = None,
        after: int | None = None,
        brief: bool = False,
        output: bool = True,
    ) -> list[StoredRun]:
        """Runs in chronological order; phase "confirm" selects "confirm:r1", too.

        ``after``: only runs with a larger ``order``. ``brief``: without output, printed lines,
        command, bindings, read-back, inherited values and ``extra``, which are empty; this reads a
        large study many times faster. ``output``: include the last lines of the output.
        """
        with self._database.read() as connection:
            return runs.listing(
                connection, study_id, trial_id, setting_key, phases, states, after, brief, output
            )

    def run_page(self, study_id: int, first: int, size: int) -> list[StoredRun]:
        """At most ``size`` runs in order from the position ``first`` on, without their output."""
        with self._database.read() as connection:
            return runs.page(connection, study_id, first, size)

    def run_of(self, study_id: int, order: int) -> StoredRun:
        """One run with its output and read-back; raises UsageError if it does not exist."""
        with self._database.read() as connection:
            return runs.one(connection, study_id, order)

    def known_runs(
        self,
        context: str,
        setting_key: str,
        *,
        other_than: int | None = None,
        launched: Mapping[str, Mapping[str, str]] | None = None,
    ) -> list[StoredRun]:
        """Runs of a setting under the same conditions in any study but ``other_than``.

        ``context`` is :attr:`StudyKey.context`. Two spaces may launch one setting differently (by
        implied values): ``launched`` selects the runs launched exactly like this.
        """
        with self._database.read() as connection:
            return runs.known_runs(connection, context, setting_key, other_than, launched)
