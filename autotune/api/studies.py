"""The list of stored studies."""

from __future__ import annotations

from typing import Any

from autotune.api.status import as_now
from autotune.measurement.result_checks import StoredAnswer, unchecked
from autotune.notes import Note
from autotune.store import Store, StudySummary


def list_studies(store: Store) -> list[tuple[StudySummary, list[Note]]]:
    """The studies, newest first, each with the reasons why its answer is unchecked."""
    lines = [as_now(store, line) for line in store.studies()]
    return [(line, unchecked(StoredAnswer.of_summary(line))) for line in lines]


def study_line(study: StudySummary, reasons: list[Note]) -> Any:
    """A line of the list as a document."""
    from autotune.api.study_documents import COLUMNS, StudyLine

    return StudyLine(**{name: getattr(study, name) for name in COLUMNS}, unchecked=reasons)
