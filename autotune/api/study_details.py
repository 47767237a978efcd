"""A stored study in detail: its fastest settings, its files, and what carried its messages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autotune.api.carriers import Carriers, carried_by
from autotune.measurement.result_checks import StoredAnswer, unchecked
from autotune.measurement.study_executables import stored_executables
from autotune.notes import Note
from autotune.space import Setting
from autotune.store import BestRuns, Store, StudyRecord
from autotune.store.model import DEFAULT_KEY, TrialRecord
from autotune.targets.executables import ExecutableChange, ExecutableFile, changes_of

if TYPE_CHECKING:
    from autotune.api.study_documents import ShownStudy


@dataclass(frozen=True)
class StudyDetails:
    """A study with what its runs show; ``carriers``: what carried the messages, by setting."""

    study: StudyRecord
    best: Sequence[BestRuns]
    run_states: dict[str, int]
    trials: Sequence[TrialRecord]
    files: Sequence[ExecutableFile]
    changes: Sequence[ExecutableChange]
    reasons: list[Note]
    carriers: dict[str, Carriers]

    @classmethod
    def of(cls, study: StudyRecord, store: Store, with_trials: bool = True) -> StudyDetails:
        """The details of a study; ``with_trials``: those of a document, which lists its trials."""
        best = store.best(study.id, sys.maxsize)
        files = stored_executables(store, study.id)
        return cls(
            study=study,
            best=best,
            run_states=store.run_counts(study.id, "state"),
            trials=store.trials(study.id) if with_trials else (),
            files=files,
            changes=changes_of(files),
            reasons=unchecked(StoredAnswer.of_study(study)),
            carriers={key: _carriers_of(store, study, key) for key in _shown_keys(study, best)},
        )

    def document(self, limit: int) -> ShownStudy:
        """The details as a document, with ``limit`` of the fastest settings."""
        from autotune.api.study_documents import ShownStudy, ShownTrial

        columns = ShownTrial.model_fields
        return ShownStudy(
            study=self.study.hash,
            status=self.study.status,
            result=self.study.result,
            unchecked=self.reasons,
            best=list(self.best[:limit]),
            run_states=self.run_states,
            executables=[file.row for file in self.files],
            changed=[change.words for change in self.changes],
            carried=self.carriers,
            trials=[ShownTrial(**{n: getattr(t, n) for n in columns}) for t in self.trials],
        )


def _shown_keys(study: StudyRecord, best: Sequence[BestRuns]) -> list[str]:
    """Keys of two settings: of the default and the recommended one, else of the best ones seen."""
    keys = [b.key for b in best]
    recommendation = (study.result or {}).get("recommended")
    first = [DEFAULT_KEY] if DEFAULT_KEY in keys else []
    first += [
        key for key in keys if recommendation and Setting.parse(key).to_json() == recommendation
    ]
    return list(dict.fromkeys([*first, *keys]))[:2]


def _carriers_of(store: Store, study: StudyRecord, key: str) -> Carriers:
    """What carried the messages in the valid runs of a setting, the last one first.

    Some is seen only in the warm-up (windows).
    """
    carriers: Carriers = {}
    for read_back in store.read_backs(study.id, key):
        carriers |= carried_by(read_back)
    return carriers
