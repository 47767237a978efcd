"""Checks of the results behind a stored answer: why there were none, and which in words.

The one place that tells it, for new answers and for those in the results database: each reason is
a function in :data:`REASONS`, which reads what a study's row and result have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from typing_extensions import TypedDict

from autotune.json_types import Described
from autotune.notes import Note
from autotune.space.commutativity import commutative_values
from autotune.store import StudyKey, StudyRecord, StudySummary
from autotune.store.keys import NOISE, OPERATIONS


class DifferingPair(TypedDict):
    """A line of the reference's output, and the most similar one of the setting."""

    reference: str
    setting: str
    """The most similar new line; empty: none."""


class OutputFigures(TypedDict):
    """How the output of a setting compares with that of the default (or of A)."""

    compared: bool
    """Whether both sides had enough runs."""
    lines: int
    """Lines that are the same in all runs of the default (or of A)."""
    differing: int
    """Those that no run of the setting has."""
    expected: int
    """Those that other ranks or threads may have changed."""
    runs: list[int]
    """Runs of the default (or A), and of the setting."""
    shown: list[DifferingPair]
    """Some of the lines that differ."""


class ResultChecks(TypedDict):
    """What was checked of the results of runs."""

    verified: Literal["application", "pattern", "json"] | None
    """What verified the results."""
    runs: int
    verified_runs: int
    output: OutputFigures | None
    """The comparison of the output; null: there is nothing to compare."""


Checks = Annotated[
    ResultChecks | None,
    Described("What was checked of the results; null: nothing was measured."),
]

UNCHECKED = "result.unchecked"
MARK = "unchecked"
"""The word that marks such an answer in lists."""


@dataclass(frozen=True)
class StoredAnswer:
    """What an answer rests on: the patterns of its study, the MPI library, and its setting.

    ``setting`` is the recommended one by parameter names; empty: the default. ``terms`` are the
    options of the strategy and the conditions of the study's key; None: they are not known.
    """

    metric: str | None
    verify: str | None
    mpi_family: str
    mpi_version: str
    setting: Mapping[str, Any] = field(default_factory=dict)
    terms: Mapping[str, Any] | None = None

    @classmethod
    def of_study(cls, study: StudyRecord) -> StoredAnswer | None:
        """The answer of a study; None if it has none."""
        key = study.key
        if study.result is None or key.strategy == NOISE:
            return None
        return cls.of_key(key, recommended_in(study.result))

    @classmethod
    def of_key(cls, key: StudyKey, setting: Mapping[str, Any]) -> StoredAnswer:
        """The answer ``setting`` of the study with this key."""
        app, mpi, terms = key.app, key.mpi, {**key.strategy_options, **key.conditions}
        return cls(app.metric, app.verify, mpi.family, mpi.version, setting, terms)

    @classmethod
    def of_summary(cls, study: StudySummary) -> StoredAnswer | None:
        """The same from a line of the list of studies."""
        if study.recommended is None or study.strategy == NOISE:
            return None
        family, _, version = study.mpi.rpartition(" ")
        return cls(study.metric, study.verify, family, version, study.recommended, study.terms)


def recommended_in(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """The setting that a stored result recommends; empty for the default."""
    recommendation = result.get("recommended")
    setting = recommendation.get("setting") if isinstance(recommendation, Mapping) else None
    return setting if isinstance(setting, Mapping) else {}


Reason = Callable[[StoredAnswer], Note | None]


def no_verification(answer: StoredAnswer) -> Note | None:
    """Nobody verified the results."""
    if answer.verify is not None:
        return None
    return Note(
        "result.unchecked", "results were not checked: neither --verify nor the application does it"
    )


def unknown_operations(answer: StoredAnswer) -> Note | None:
    """Its setting is wrong for operations that do not commute, and nobody looked for one."""
    terms = answer.terms
    values = commutative_values(answer.setting)
    if not values or terms is None or OPERATIONS in terms or terms.get("commutative_only"):
        return None
    return Note(
        "operations.not_seen",
        "operations that do not commute get wrong results by "
        f"{', '.join(f'{name}={value}' for name, value in sorted(values.items()))}, and the study "
        "did not look for one; search again",
        {"values": dict(values)},
    )


REASONS: tuple[Reason, ...] = (no_verification, unknown_operations)
"""The reasons, in the order in which they are shown."""


def unchecked(answer: StoredAnswer | None) -> list[Note]:
    """Why the results behind an answer were not checked; empty if they were, or if there is none.

    An answer may also rest on a check that is known to be wrong.
    """
    if answer is None:
        return []
    return [note for reason in REASONS if (note := reason(answer)) is not None]


_VERIFIER = {
    "application": "by the application",
    "pattern": "by --verify",
    "json": "by --verify",
}


def checks_words(checks: ResultChecks) -> str:
    """What was checked, in one line; raises LookupError or TypeError for other documents."""
    by = checks["verified"]
    if by is None:
        sentence = "results were not checked"
    else:
        sentence = (
            f"results verified {_VERIFIER[by]} in {checks['verified_runs']} of {checks['runs']}"
        )
        sentence += " runs"
    output = checks["output"]
    if output is None:
        return sentence if by is not None else f"{sentence} (--verify)"
    lines, other = output["lines"], output["differing"] + output["expected"]
    if not output["compared"] or not lines:
        return sentence if by is not None else f"{sentence}: no --verify, no output to compare"
    if other:
        return f"{sentence}; {other} of {lines} output lines differ"
    return f"{sentence}; {lines} output lines are the same" + (" (--verify)" if by is None else "")


def shown_lines(note: Note) -> list[str]:
    """The lines of output that a note is about, side by side; empty for other notes."""
    rows = note.data.get("shown", ())
    if not isinstance(rows, Sequence):
        return []
    lines = []
    for row in rows:
        lines += [f"  - {row['reference']}", f"  + {row['setting']}" if row["setting"] else ""]
    return [line for line in lines if line]
