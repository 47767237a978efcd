"""Reading trials and runs of a study column by column, without a record for each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal

from autotune.store import run_columns, trials
from autotune.store.database import Database
from autotune.store.model import (
    RUNNING,
    BestRuns,
    CourseRun,
    HostRuns,
    StoredRun,
    TrialFigure,
    TrialRecord,
    Value,
)
from runner.types import ReadBack


class StudyFigures:
    """Part of :class:`autotune.store.Store`; every method is one transaction."""

    _database: Database

    def studies_with(self, names: Collection[str]) -> list[int]:
        """Ids of the studies that tried a value of one of these parameters, the newest first."""
        with self._database.read() as connection:
            return trials.studies_with(connection, names)

    def trials(self, study_id: int, since: int = 0) -> list[TrialRecord]:
        """Trials from the number ``since`` on, in order, including running ones."""
        with self._database.read() as connection:
            return trials.listing(connection, study_id, since)

    def trial_figures(self, study_id: int) -> list[TrialFigure]:
        """All trials in order, without attributes and owners: many times as fast as records."""
        with self._database.read() as connection:
            return trials.figures(connection, study_id)

    def trial_settings(self, study_id: int) -> dict[int, dict[str, Value]]:
        """The settings of all trials, by the trials' ids."""
        with self._database.read() as connection:
            return trials.settings(connection, study_id)

    def trial_counts(self, study_id: int) -> dict[str, int]:
        """Number of trials by state."""
        with self._database.read() as connection:
            return trials.counts(connection, study_id)

    def running_trials(self, study_id: int) -> list[TrialRecord]:
        """The trials that some process measures."""
        with self._database.read() as connection:
            return trials.listing(connection, study_id, state=RUNNING)

    def best_trials(self, study_id: int, most: int) -> list[TrialRecord]:
        """The trials with the smallest estimates among those that ended well, at most ``most``."""
        with self._database.read() as connection:
            return trials.best(connection, study_id, most)

    def run_columns(
        self, study_id: int, output: bool = False
    ) -> Iterator[dict[str, Sequence[Any]]]:
        """All runs of a study in order as columns, some thousand runs at a time, for tables.

        Lists and dictionaries are JSON. ``output``: include the programs' output
        (``stdout_tail``, ``stderr_tail``). All parts are of one state of the database.
        """
        with self._database.read() as connection:
            yield from run_columns.tables(connection, study_id, output)

    def course(self, study_id: int) -> list[CourseRun]:
        """All runs of a study in order, without their figures: many times as fast as records."""
        with self._database.read() as connection:
            return run_columns.course(connection, study_id)

    def hosts(self, study_id: int) -> list[HostRuns]:
        """The hosts of a study, in alphabetical order, with the number of their valid runs."""
        with self._database.read() as connection:
            return run_columns.hosts(connection, study_id)

    def last_run(self, study_id: int, state: str | None = None) -> StoredRun | None:
        """The last run of a study without its output, of those in this ``state`` if it is given.

        None if there is none.
        """
        with self._database.read() as connection:
            return run_columns.last(connection, study_id, state)

    def run_counts(self, study_id: int, by: Literal["state", "phase", "place"]) -> dict[str, int]:
        """Number of runs by state, phase or place, the largest number first."""
        with self._database.read() as connection:
            return run_columns.counts(connection, study_id, by)

    def read_back_states(self, study_id: int) -> dict[str, set[str]]:
        """The states in which the valid runs read each parameter back, by its name."""
        with self._database.read() as connection:
            return run_columns.read_back_states(connection, study_id)

    def read_backs(self, study_id: int, setting_key: str) -> list[dict[str, ReadBack]]:
        """The different outcomes of the valid runs of a setting, ordered by their last runs."""
        with self._database.read() as connection:
            return run_columns.read_backs(connection, study_id, setting_key)

    def values(self, study_id: int, setting_key: str) -> dict[str, list[float]]:
        """Seconds of the valid runs of a setting, by phase."""
        with self._database.read() as connection:
            return run_columns.values(connection, study_id, setting_key)

    def best(
        self, study_id: int, limit: int = 10, phases: Collection[str] | None = None
    ) -> list[BestRuns]:
        """Settings by the median of their valid runs, the fastest first.

        Only runs of ``phases`` count; None means all but the warm-up.
        """
        with self._database.read() as connection:
            return run_columns.best(connection, study_id, limit, phases)
