"""``autotune features``: writes the features of a program from one traced run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, WithJsonSchema

from autotune.api.requests import FeaturesRequest
from autotune.cli.options import JsonOut, StoreUrl
from autotune.cli.requests import takes_request
from autotune.document import Document, LibraryName, Number
from autotune.files import check_writable
from autotune.terminal.features import print_features
from autotune.terminal.render import note_line, print_line, print_message, print_table, write_json

if TYPE_CHECKING:
    pass


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


@takes_request
def features(request: FeaturesRequest, store: StoreUrl = None, json_out: JsonOut = None) -> None:
    """Trace one run of a program and write its communication features (app_features.json).

    The results database keeps them, too: a search of the program then begins with predicted
    settings.
    """
    from autotune.api.features import keep_features, traced_features
    from autotune.api.figures import measured_target
    from autotune.store import Store
    from autotune.targets.metric import failure_lines

    if request.explain:
        _explain(json_out)
        return
    out, guard = Path(request.out), request.guard
    check_writable(out)
    with Store.open(store) as opened:
        target = measured_target(request.target, opened, guard=guard)
        found, traced = traced_features(target, request.method, guard)
        found.save(out)
        keep_features(found, traced, target, opened)
    if json_out:
        write_json(TracedFeatures.model_validate(found.to_json()), json_out)
    asked = request.target.metric or request.target.metric_rate
    if asked and traced.record.state == "no_metric":
        for line in (
            note_line("metric.none", traced.record.reason),
            *failure_lines(traced.record),
        ):
            print_message(line)
    if json_out != "-":
        print_features(found, traced)
        print_line(f"features written to {out}", whole=True)


def _explain(json_out: str | None) -> None:
    from runner.trace import FEATURES

    if json_out:
        rows = [
            FeatureRow(name=s.name, unit=s.unit, kind=s.kind, definition=s.definition)
            for s in FEATURES
        ]
        write_json(rows, json_out)
    if json_out != "-":
        lines = [[s.name, s.unit, s.kind, s.definition] for s in FEATURES]
        print_table("", ["feature", "unit", "from", "definition"], lines)
