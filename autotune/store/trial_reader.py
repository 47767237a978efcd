"""Reading the trials of the store."""

from __future__ import annotations

from collections.abc import Collection

from autotune.store import trials
from autotune.store.database import Database
from autotune.store.model import RUNNING, TrialFigure, TrialRecord, Value


class TrialReader:
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
