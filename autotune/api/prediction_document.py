"""The document of a predicted setting: what ``autotune predict --json`` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from autotune.api.over_decomposition import OverDecomposition
from autotune.comparison.comparison_document import ComparisonFigures
from autotune.document import Document, Omitted
from autotune.json_types import Ends, Number, ValuesByName
from autotune.notes import Note
from autotune.targets.rows import MpiChoiceRow

if TYPE_CHECKING:
    from autotune.prediction.composed import ComposedAnswer
    from autotune.prediction.model_file import About


Share = Annotated[float, Field(ge=0, le=1)]


class ParameterReason(Document):
    """Why a parameter is in a predicted setting."""

    share_of_run_time: Number | None
    time: Number


class OperationWork(Document):
    """What a program does in an operation of MPI."""

    operation: str
    bytes: Number
    calls: Number
    share_of_run_time: Number


class FarMessages(Document):
    """The share of the messages between nodes, in the traced run and with map_by=node."""

    traced: Share
    in_turn: Share


class CalibrationSays(Document):
    """What the calibration of a cluster says of a program."""

    calibration: str
    largest_possible_gain: Number
    """Gain with the best response of each operation, as a fraction."""
    share_that_responds: Number
    """Share of the run time that answers to settings."""
    work: list[OperationWork]
    messages_between_nodes: FarMessages | None
    """Share of the messages between nodes: in the traced run, and with map_by=node; null where it
    is the same or not known."""


class NeighbourCell(Document):
    """A similar program of the training set, with its best setting."""

    cell: str
    distance: Number
    best: ValuesByName
    gain: Number | None


class ModelOrigin(Document):
    """The model of a prediction, and what it learned from."""

    place: str
    kind: str
    data: str
    machines: list[str]
    mpis: list[str]

    @classmethod
    def of(cls, about: About, place: str) -> ModelOrigin:
        """The origin of a model file at ``place``."""
        return cls(
            place=place,
            kind=about.kind,
            data=about.data_hash,
            machines=list(about.machines),
            mpis=list(about.mpis),
        )


class PredictionDocument(Document):
    """A predicted setting, and why."""

    schema_: Literal["autotune-prediction-1"] = Field(
        default="autotune-prediction-1", alias="schema"
    )
    setting: ValuesByName
    """Values by parameter; {} is the default."""
    expected_gain: Number | None
    gain_interval95: Ends | None
    best_scored: ValuesByName
    best_scored_gain: Number | None
    unsure: str | None
    why: dict[str, ParameterReason]
    chance_of_harm: Number | None
    """Chance, 0 to 1, that the setting with the best score is slower than the default; null on a
    machine of which the model has seen nothing."""
    composed: CalibrationSays | None
    """What the calibration of this cluster says of the program; null without one."""
    distance: Number | None
    reach: Number | None
    far: bool
    neighbours: list[NeighbourCell]
    foreign: list[Note]
    app: str | None
    input: str | None
    ranks: int
    model: ModelOrigin
    check: ComparisonFigures | None
    """Comparison with the default (--check), as of compare without a, b and schema."""
    params_file: str | None
    over_decomposition: Omitted[OverDecomposition] = None
    """What tasks that hide communication could bring at most."""
    mpi_choice: Omitted[MpiChoiceRow] = None
    """Why the MPI library of the check was taken."""


def composed_document(answer: ComposedAnswer) -> CalibrationSays:
    """What a calibration says of a program."""
    far_messages = answer.moved
    return CalibrationSays(
        calibration=answer.calibration.id,
        largest_possible_gain=answer.most,
        share_that_responds=answer.responds,
        work=[
            OperationWork(
                operation=work.operation,
                bytes=work.size,
                calls=work.calls,
                share_of_run_time=part,
            )
            for work, part in answer.parts
        ],
        messages_between_nodes=None
        if far_messages is None
        else FarMessages(traced=far_messages.before, in_turn=far_messages.after),
    )
