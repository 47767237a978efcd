"""The documents of ``autotune features``: traced features, and the list of features."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from autotune.document import Document, Omitted
from autotune.json_types import LibraryName, Number
from autotune.targets.rows import MpiChoiceRow
from runner.trace import FEATURES


class FeatureRow(Document):
    """A feature and its definition."""

    name: str
    unit: str
    kind: str
    definition: str


FeatureList = list[FeatureRow]
Amount = Annotated[int | float, Field(ge=0), WithJsonSchema({"type": "number", "minimum": 0})]
Count = Annotated[int, Field(ge=0)]


class CallRow(Document):
    """The calls of one operation of one kind; means over all ranks."""

    operation: str
    nonblocking: bool
    size_bin: int = Field(ge=0, le=25)
    """0: no bytes; k: 2^(k-1) to 2^k-1 bytes; 25: 2^24 bytes or more."""
    comm_size: Count
    """Ranks of the communicator; 0 where none matters."""
    far: bool
    """The receiver, or a part of the communicator, is on another node."""
    calls: Amount
    bytes: Amount
    """For wait: requests handed to the calls."""
    seconds: Amount
    least_seconds: Amount
    """Of the rank with the least, of those that made such calls."""
    rank_share: float = Field(gt=0, le=1)
    """Share of the ranks that made such calls."""


class CallProfile(Document):
    """Where the communication time went."""

    compute_s: Amount
    """Time from MPI_Init to MPI_Finalize outside of MPI calls."""
    waiting: dict[str, Amount]
    """By operation: time beyond that of the rank that spent the least in it."""
    rows: list[CallRow]


class MessagePartners(Document):
    """Which ranks sent messages to which."""

    nodes: list[Count]
    """Number of the node of each rank."""
    pairs: list[tuple[Count, Count, Count, Count]]
    """Sender, receiver, messages, bytes."""


class TracedSteps(Document):
    """What the ranks repeat."""

    steps: float = Field(ge=1)
    """Steps of a rank, a mean over ranks."""
    rounds: int = Field(ge=1)
    """How often the rank with the most waits for others, one time after the other."""
    compute_s: list[Amount]
    """Of each rank: time outside of MPI calls in its steps."""
    variation: Amount
    """Standard deviation of the computation of a step over its mean."""


class TracedFeatures(Document):
    """The features of one traced run."""

    schema_: Literal["autotune-features-1"] = Field(default="autotune-features-1", alias="schema")
    method: Literal["pmpi", "mpi4py"]
    app: str | None
    input: str | None
    argv: list[str]
    cwd: str
    cluster: str | None
    ranks: int
    nodes: int
    cores: int
    mpi: LibraryName
    """MPI library: family and version."""
    machine: dict[str, str]
    wall_s: Number
    """Longest time of a rank from MPI_Init to MPI_Finalize."""
    features: dict[str, Number]
    """Value by feature; autotune features --list defines them."""
    figure_s: Amount | None
    """Seconds that a search compares: the program's own figure, or the launch's time. Null: not
    recorded."""
    profile: CallProfile | None
    """Where the communication time went; seconds, means over the ranks where nothing else is said.
    Null: not recorded."""
    partners: MessagePartners | None
    """Which ranks sent messages to which; left out where there are more than 20,000 pairs."""
    steps: Omitted[TracedSteps] = None
    """What the ranks repeat; left out where it was not counted, or nothing is repeated."""
    mpi_choice: Omitted[MpiChoiceRow] = None
    """Why this MPI library was taken; it is no part of the features file."""


def feature_list() -> FeatureList:
    """Every feature with its definition."""
    columns = FeatureRow.model_fields
    return [FeatureRow(**{name: getattr(spec, name) for name in columns}) for spec in FEATURES]
