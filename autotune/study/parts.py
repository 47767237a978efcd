"""Parts of the documents of searches and comparisons: rows that are stored and printed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from autotune.document import Ends, Number, ValuesByName


class Rejections(TypedDict):
    """A setting with runs that were rejected for foreign load."""

    setting: str
    """Key of the setting."""
    runs: int
    rejected: int


class DecidingStep(TypedDict):
    """What would decide an open question."""

    words: str
    options: dict[str, str]
    """Options of the command, with their new values."""


class GainOnPairs(TypedDict):
    """A gain and the number of pairs that it comes from."""

    gain: Number | None
    ci95: Ends | None
    pairs: int


class DefaultFigures(TypedDict, total=False):
    """The median of the default and the number of its runs; empty before the first run."""

    median_s: Number | None
    n: int


class BestSeen(TypedDict):
    """The best setting seen, significant or not."""

    setting: ValuesByName
    """Values by parameter; {} is the default."""
    median_s: Number
    n: int


class RoundOutcome(TypedDict):
    """One proof of a study."""

    round: int
    alpha: Number
    trials: int
    finalists: int
    outcome: str


class PrunedSetting(TypedDict):
    """Whether each parameter of a setting was seen to matter."""

    state: Literal["slim", "pruned", "not pruned"]
    why: str
    whole: ValuesByName | None
    margin: Number | None
    non_inferior: bool | None
    slower_at_most: Number | None
    blocks: int


class SlowRates(TypedDict):
    """How often launches of a setting and of the default were slow."""

    slow: int
    launches: int
    default_slow: int
    default_launches: int
    verdict: Literal["rarer", "more frequent", "no difference shown"]
    alpha: Number
    rarer_from: Number | None
    more_from: Number | None
    threshold: Number


class LibraryLaunches(TypedDict):
    """An MPI library of a search, and its launches."""

    setting: str | None
    """Value of the parameter mpi; null for the library of the default."""
    name: str
    """Family."""
    version: str
    path: str
    """Directory of the launcher."""
    launcher: str
    """Path of the launcher."""
    launches: int
    """Valid launches under this library, without warm-ups."""
    start_s: Number | None
    """Median of wall time minus the program's own figure, in seconds; null if the program prints
    none."""


class SwitchedLibrary(TypedDict):
    """What the library of the recommended setting needs."""

    before: LibraryLaunches
    """Library of the default."""
    after: LibraryLaunches
    """Library of the recommended setting."""
    variables: dict[str, str]
    """Variables by which the program loads the library; the command line sets them."""
    links: str
    """Folder of autotune's cache that the variables name; empty if they name none."""
    dropped: list[str]
    """Launch options and inherited settings in force under the default's library only."""
    same_family: bool
    timed: Literal["figure", "wall"]
    """Whether the program's own figure was compared, or whole launches."""


class LayoutRow(TypedDict):
    """A layout that was tried, with its fastest setting."""

    ranks: int
    threads: int
    workers: int
    cores: int
    time_s: Number
    core_s: Number
    runs: int
    pareto: bool
    setting: ValuesByName


RejectionList = Annotated[
    list[Rejections],
    Field(description="Settings with runs that were rejected for foreign load."),
]
