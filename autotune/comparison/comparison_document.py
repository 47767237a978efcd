"""The document of a comparison: the figures, and the two settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from autotune.document import Document, Omitted
from autotune.json_types import Ends, Number, Unchecked, ValuesByName
from autotune.measurement.result_checks import Checks
from autotune.notes import Note
from autotune.space import Setting
from autotune.study.search_result import DecidingStep, GainOnPairs, RejectionList
from autotune.targets.rows import MpiChoiceRow
from autotune.wording import Metric

Answer = Literal[
    "better",
    "worse",
    "equivalent",
    "futile",
    "undecided",
    "continue",
    "failed",
    "contradicted",
    "unguarded",
]
"""What a comparison can say of B against A."""
Verdict = Answer | Literal["not slower"]
"""The same with the answer to another question, which class-wide searches ask."""


class LibrarySide(TypedDict):
    """The library and the program of one side of a comparison."""

    name: str
    version: str
    path: str
    program: str


class BothLibraries(TypedDict):
    """Library and program of both sides."""

    a: LibrarySide
    b: LibrarySide


class ComparisonFigures(Document):
    """What a comparison has shown; it is stored as the result of its study."""

    study: str
    round: int
    guard: bool
    outcome: Verdict
    """B compared with A."""
    seen: str
    """The outcome as if guarded."""
    why: str
    words: str
    """The answer in one sentence."""
    gain: Number | None
    """Gain of B over A."""
    gain_ci95: Ends | None
    """Ends of the 95 % interval of the gain."""
    gain_range: Ends | None
    """Range of the pairs, if they are too few for an interval."""
    significant: bool
    fresh: GainOnPairs | None
    """The gain of B over A on pairs after the decision, in which each run follows a run of its own
    side; null without."""
    pairs: int
    metric: Metric
    """What the figures are; the time of a rate is 1/rate, without the prefix of its unit."""
    a_median_s: Number | None
    b_median_s: Number | None
    runs: int
    runs_rejected: int
    rejections: RejectionList
    drift_repeats: int
    budget_ended_it: bool
    comparisons: int
    """Number of searches and comparisons of this program against its default in the database; each
    has an error probability of its own."""
    next_step: DecidingStep | None
    """What would decide an open question; null if nothing is open."""
    checks: Checks
    unchecked: Unchecked
    contradictions: list[Note]
    warnings: list[Note]


class LibraryFigures(ComparisonFigures):
    """What a comparison of two libraries has shown."""

    mpi: BothLibraries
    """The two libraries."""
    faster: Literal["a", "b"] | None
    """The faster library; null if the interval does not show it."""


def stored_figures(data: Mapping[str, Any]) -> ComparisonFigures:
    """The stored result of a comparison; raises ValueError for a damaged one."""
    return (LibraryFigures if "mpi" in data else ComparisonFigures).model_validate(data)


class _Settings(Document):
    schema_: Literal["autotune-comparison-1"] = Field(
        default="autotune-comparison-1", alias="schema"
    )
    a: ValuesByName
    """Setting A."""
    b: ValuesByName
    """Setting B."""


class ComparisonDocument(ComparisonFigures, _Settings):
    """A comparison of two settings under one library."""

    outcome: Answer
    """B compared with A."""
    mpi_choice: Omitted[MpiChoiceRow] = None
    """Why this command launches with that MPI library."""


class LibraryComparison(LibraryFigures, _Settings):
    """A comparison of two settings under a library each."""

    outcome: Answer
    """B compared with A."""


AnyComparison = ComparisonDocument | LibraryComparison


def comparison_document(
    first: Setting,
    second: Setting,
    figures: ComparisonFigures,
    choice: MpiChoiceRow | None = None,
) -> AnyComparison:
    """The document of a comparison of ``second`` with ``first``.

    ``choice`` says why the library was taken, where both settings have one.
    """
    a, b = first.to_json(), second.to_json()
    if isinstance(figures, LibraryFigures):
        return LibraryComparison(a=a, b=b, **vars(figures))
    return ComparisonDocument(a=a, b=b, mpi_choice=choice, **vars(figures))
