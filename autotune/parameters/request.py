"""Requests: the values that parameters get from the launch line, variables and files.

Which of several values for one parameter counts, and which layer a value reaches, was measured with
Open MPI 4.1.4 and 5.0.11 (tests/parameters/test_precedence.py): a value on the line counts before
one of the environment, that before the user's file, and that before the system's; ``--tune`` stands
before the user's file in 4.1 and behind it in 5.0; the override file of the system is the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from autotune.parameters.catalogue import (
    BELOW,
    PMIX,
    PRTE,
    VARIABLE_LAYERS,
    Catalogue,
    plain_name,
)
from runner.types import LIBRARY


class ValuePlace(IntEnum):
    """Where a value stands; of two values for one parameter the larger place counts."""

    SYSTEM_FILE = 1
    USER_FILE = 2
    LOADED_FILE = 3
    """A file that an option of the line loads: ``--tune``, ``--am``."""
    ENVIRONMENT = 4
    OPTIONS_FILE = 5
    """A file with options of the launcher: ``mpiexec.conf`` of Intel MPI."""
    LINE = 6
    EXPORT = 7
    """A variable that an option of the line gives the ranks."""
    OVERRIDE_FILE = 8


@dataclass(frozen=True)
class Request:
    """One value for one parameter.

    ``name`` is the parameter's own name, ``typed`` what stands there (``OMPI_MCA_btl``). ``layer``
    is the one to which the place hands it: of the option, the prefix or the file. ``where`` is the
    variable or the file, ``line`` the number of the line in a file (0: unknown).
    """

    name: str
    value: str
    place: ValuePlace
    layer: str
    typed: str = ""
    where: str = ""
    line: int = 0

    @property
    def origin(self) -> str:
        """Where the value stands, for people."""
        if self.place in (ValuePlace.LINE, ValuePlace.EXPORT):
            return "the launch line"
        if self.place is ValuePlace.ENVIRONMENT:
            return f"the variable {self.where}"
        return f"{self.where}:{self.line}" if self.line else self.where


OPTION_LAYERS = {"prtemca": PRTE, "gprtemca": PRTE, "pmixmca": PMIX, "gpmixmca": PMIX}
"""Options without dashes -> the layer whose parameters they set; all others ending in mca: the
library's."""
_RUNTIME_FRAMEWORKS = frozenset(
    {
        *("errmgr", "ess", "filem", "grpcomm", "hwloc", "iof", "odls", "oob", "plm", "prte"),
        *("prtebacktrace", "prtedl", "prteinstalldirs", "prtereachable", "ras", "rmaps", "rtc"),
        *("schizo", "state"),
    }
)
"""First words of the names that ``--mca`` hands on to PRRTE 3 (seen with 3.0.14: all others stay
with the library, among them PRRTE's own rml, routed and display)."""
_LAUNCHER_OWN = frozenset({"PREFIXES", "num_procs", "initial_wdir", "cpu_type"})
"""Variables ``OMPI_MCA_*`` that a launcher gives its ranks; they are no settings."""


def option_layer(option: str) -> str:
    """The layer whose parameters an option of Open MPI's launcher sets."""
    return OPTION_LAYERS.get(option.lstrip("-"), LIBRARY)


def reaches(request: Request, layer: str, catalogue: Catalogue) -> bool:
    """Whether a value of this place reaches a parameter of this layer."""
    if request.layer == layer or not catalogue.has_runtime_layers:
        return request.layer == layer or layer in BELOW.values()
    first = request.name.partition("_")[0]
    is_typed = (
        request.place in (ValuePlace.LINE, ValuePlace.LOADED_FILE) and request.layer == LIBRARY
    )
    match layer:
        case "prte":
            # Both read the files of PMIx.
            in_file = request.layer == PMIX and request.place <= ValuePlace.USER_FILE
            return (is_typed and first in _RUNTIME_FRAMEWORKS) or in_file
        case "pmix":
            is_in_file = request.place <= ValuePlace.USER_FILE
            return request.layer == PRTE if is_in_file else request.layer == LIBRARY
        case "mca":
            return request.layer == PMIX and request.place <= ValuePlace.USER_FILE
    return False


def from_variables(
    variables: Mapping[str, str], catalogue: Catalogue, place: ValuePlace = ValuePlace.ENVIRONMENT
) -> Iterator[Request]:
    """The requests of variables, of the environment or of options that give them to ranks."""
    for typed, value in variables.items():
        layer = catalogue.layer_of(typed)
        if layer is None or (layer in VARIABLE_LAYERS.values() and not _is_mca(typed, catalogue)):
            continue
        name = plain_name(typed)
        if name not in _LAUNCHER_OWN:
            yield Request(name, value, place, layer, typed, typed)


def _is_mca(name: str, catalogue: Catalogue) -> bool:
    return catalogue.family == "openmpi" or not name.startswith(tuple(VARIABLE_LAYERS))


def from_file(
    path: str, values: Iterable[tuple[int, str, str]], catalogue: Catalogue
) -> Iterator[Request]:
    """The requests of a file: number of the line (0: unknown), name and value of each."""
    name = path.rpartition("/")[2]
    layer = LIBRARY
    if catalogue.has_runtime_layers:
        folder = path.rpartition("/")[0].rpartition("/")[2]
        layers = {"prte": PRTE, "pmix": PMIX}
        kind = folder.lstrip(".") if name == "mca-params.conf" else name.partition("-")[0]
        layer = layers.get(kind, LIBRARY)
    place = ValuePlace.USER_FILE if name == "mca-params.conf" else ValuePlace.SYSTEM_FILE
    if name.endswith("mpiexec.conf"):
        place = ValuePlace.OPTIONS_FILE
    elif name.endswith("-override.conf"):
        place = ValuePlace.OVERRIDE_FILE
    for line, own, value in values:
        below = catalogue.layer_of(own)
        own_layer = below if below is not None and below in BELOW.values() else layer
        yield Request(own, value, place, own_layer, own, path, line)


def by_precedence(requests: Sequence[Request], catalogue: Catalogue) -> list[Request]:
    """The requests, the one that counts first; of equal places the first one given counts."""

    def order(request: Request) -> float:
        # 5.0 hands the values of the user's file on as variables, before those of --tune.
        late = request.place is ValuePlace.LOADED_FILE and catalogue.has_runtime_layers
        return -1.5 if late else -float(request.place)

    return sorted(requests, key=order)
