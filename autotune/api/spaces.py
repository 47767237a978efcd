"""Parameter spaces on one MPI library: documents, and the parameters that can act."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autotune.config.cluster import load_cluster
from autotune.document import Document, Omitted
from autotune.json_types import ParameterValue
from autotune.space import Space
from autotune.space.check import SpaceFinding, SpaceReport
from autotune.space.discover import discover, idle_parameters, outranked_parameters
from autotune.space.layout import LayoutMap
from autotune.targets.startup import transport_in_force
from runner.mpi.library import Library, ParamInfo


class SpaceRow(Document):
    """A parameter space and its file."""

    name: str
    file: str


SpaceList = list[SpaceRow]


class ParameterRow(Document):
    """A parameter of a space on one MPI library."""

    name: str
    levels: tuple[ParameterValue, ...]
    default: ParameterValue | None
    target: str


class SpaceWords(Document):
    """How the parameters of a space say the words of layouts."""

    words: dict[str, str]
    """What each word is here: an expression, or named values of a parameter."""
    own: dict[str, str]
    """Parameters that have no word, with the reason."""
    absent: dict[str, str]
    """Words that have no meaning here, with the reason."""


class ShownSpace(Document):
    """A parameter space on one MPI library."""

    name: str
    hash: str
    parameters: list[ParameterRow]
    derived: dict[str, str]
    constraints: list[str]
    absent: dict[str, str]
    """Parameters left out, with the reason."""
    layout: Omitted[SpaceWords] = None
    """The parameters in the words of layouts, if the space has any."""


class CheckedSpace(Document):
    """What is wrong with a space file, and what is worth knowing."""

    file: str
    ok: bool
    findings: tuple[SpaceFinding, ...]


ParameterList = list[ParamInfo]


def shown_space(space: Space) -> ShownSpace:
    """The space as a document."""
    return ShownSpace(
        name=space.name,
        hash=space.hash,
        parameters=[
            ParameterRow(name=p.name, levels=p.levels, default=p.default, target=p.target)
            for p in space
        ],
        derived={name: str(expr) for name, expr in space.derived.items()},
        constraints=[str(c) for c in space.constraints],
        absent=dict(space.absent),
        layout=space_words(space),
    )


def space_words(space: Space) -> SpaceWords | None:
    """The words of layouts in a space; None if it has none."""
    if not space.layout.words:
        return None
    layouts = LayoutMap(space)
    return SpaceWords(
        words={word: str(space.layout.words[word]) for word in layouts.words},
        own=layouts.own,
        absent=layouts.absent,
    )


def checked_space(report: SpaceReport) -> CheckedSpace:
    """What was found in a space file, as a document."""
    return CheckedSpace(file=report.path, ok=report.ok, findings=report.findings)


@dataclass(frozen=True)
class ActiveParameters:
    """Parameters of an MPI library that can act on this machine.

    ``idle`` and ``inferior``: numbers of those that cannot, because of ``transport`` (what carries
    the messages), or because another component has a higher priority.
    """

    parameters: Sequence[ParamInfo]
    idle: int
    inferior: int
    transport: str


def active_parameters(
    library: Library, pattern: str | None, level: int, cluster: str | None
) -> ActiveParameters:
    """The parameters whose names match, up to a level; without a cluster also those that cannot
    act."""
    all_parameters = discover(library, pattern, level)
    transport = ""
    if cluster is not None:
        transport = transport_in_force(library, load_cluster(cluster).options(library))
    idle = idle_parameters(all_parameters, library, transport)
    inferior = {} if cluster is None else outranked_parameters(all_parameters, library)
    parameters = [info for info in all_parameters if info.name not in idle | inferior]
    return ActiveParameters(parameters, len(idle), len(inferior), transport)
