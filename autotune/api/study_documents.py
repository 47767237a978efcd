"""The documents of stored studies; a command imports them when it writes one."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_type_hints

from pydantic import Field, create_model

from autotune.document import Document
from autotune.json_types import Number, Unchecked, ValuesByName
from autotune.store import BestRuns, StudySummary
from autotune.targets.rows import ExecutableRows

COLUMNS = {
    f.name: get_type_hints(StudySummary)[f.name] for f in fields(StudySummary) if f.name != "terms"
}
"""The columns of the list of studies, with their types."""
StudyLine: Any = create_model(
    "StudyLine",
    __base__=Document,
    __doc__="A line of the list of studies.",
    **{name: (kind, ...) for name, kind in COLUMNS.items()}
    | {
        "recommended": (
            COLUMNS["recommended"],
            Field(description="The setting of its answer, empty for the default; null: no answer."),
        ),
        "unchecked": (Unchecked, ...),
    },
)
"""A row of ``autotune studies``: the columns of :class:`StudySummary`, and why it is unchecked."""
StudyList: Any = list[StudyLine]


class ShownTrial(Document):
    """A setting of a study."""

    number: int
    setting: ValuesByName
    state: str
    estimate: Number | None
    """Time divided by that of the default."""
    reason: str


class ShownStudy(Document):
    """A study: its answer, its fastest settings, and how its runs ended."""

    study: str
    """Hash of the study."""
    status: str
    result: dict[str, Any] | None
    """Result of search, of compare (without a, b and schema) or of noise; null before the end."""
    unchecked: Unchecked
    best: list[BestRuns]
    """Fastest settings by the median of all their runs."""
    run_states: dict[str, int]
    """Number of runs by state."""
    executables: ExecutableRows
    changed: list[str]
    """Those of these files that have changed since, in words."""
    carried: dict[str, dict[str, str]]
    """What carried the messages, by setting."""
    trials: list[ShownTrial]
