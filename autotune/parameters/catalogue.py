"""The catalogue of one installation: every parameter that can be set for a launch with it.

A parameter belongs to a layer: the MPI library itself (``mca``), the run-time that starts its ranks
(``prte``, ``pmix``), or a library below it (``ucx``, ``libfabric``). Some of them are known though
they are not listed with a value: those of components that cannot be opened on this machine, and
those of the shipped names (:mod:`autotune.parameters.shipped`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from autotune.nearest import nearest
from autotune.parameters.shipped import ShippedNames, shipped_names, shipped_of
from autotune.space.new_names import new_names
from runner.mpi.discover import adapter, families
from runner.mpi.library import Library, ParamInfo
from runner.mpi.transport_libraries import PREFIXES, transport_libraries
from runner.types import LIBRARY

PRTE, PMIX, UCX, LIBFABRIC = "prte", "pmix", "ucx", "libfabric"
TITLES = {PRTE: "PRRTE", PMIX: "PMIx", UCX: "UCX", LIBFABRIC: "libfabric"}
"""Names of the layers other than the library, for people."""
VARIABLE_LAYERS = {"OMPI_MCA_": LIBRARY, "PRTE_MCA_": PRTE, "PMIX_MCA_": PMIX}
"""Prefix of a variable -> the layer whose parameters it sets."""
BELOW = {prefix: name.lower() for name, prefix in PREFIXES.items()}
"""Prefix of the variables of a library below MPI -> its layer."""
_OWN_PREFIXES = {"mpich": ("MPIR_CVAR_", "MPICH_", "MPIR_PARAM_"), "impi": ("I_MPI_", "MPIR_CVAR_")}
_PROJECT = re.compile(r"(?:opal|ompi|orte|prte|pmix)_(?=\w+_)")
"""A project's name, which may stand before the name of any of its parameters."""


@dataclass(frozen=True)
class KnownParameter:
    """A parameter of the catalogue; ``info`` is None if only its name is known.

    ``is_closed``: its component is installed, but cannot be opened on this machine.
    """

    name: str
    layer: str
    info: ParamInfo | None = None
    is_closed: bool = False


@dataclass(frozen=True)
class Catalogue:
    """The parameters of an installation by layer.

    ``is_complete``: the library itself listed them; if not, they are the shipped names of its
    series, and an unknown name is only probably wrong. ``outranked`` maps parameters of components
    that serve no collective by default to the reason.
    """

    family: str
    version: str
    layers: Mapping[str, Mapping[str, ParamInfo | None]]
    closed: Mapping[str, ParamInfo] = field(default_factory=dict)
    components: Mapping[str, frozenset[str]] = field(default_factory=dict)
    outranked: Mapping[str, str] = field(default_factory=dict)
    is_complete: bool = True

    @classmethod
    def of(cls, library: Library) -> Catalogue:
        """The catalogue of an installation; the shipped names if it lists nothing itself."""
        if not library.params:
            return cls.shipped(library)
        own = adapter(library)
        layers: dict[str, Mapping[str, ParamInfo | None]] = {LIBRARY: library.params}
        layers |= own.layered_parameters()
        layers |= {one.name.lower(): one.params for one in transport_libraries(library)}
        return cls(
            library.family,
            library.version,
            layers,
            own.closed_parameters(),
            own.components(),
            own.idle_parameters(),
        )

    @classmethod
    def shipped(cls, library: Library) -> Catalogue:
        """The catalogue of a version by its shipped names, and what the library lists of its own.

        Nothing of the machine is asked. A version without shipped names has only what it lists.
        """
        series = shipped_of(library.family, library.version_tuple)
        names = series.names if series is not None else {}
        layers: dict[str, dict[str, ParamInfo | None]] = {
            layer: dict.fromkeys(sorted(several)) for layer, several in names.items()
        }
        if library.params:
            layers.setdefault(LIBRARY, {}).update(library.params)
        for layer in BELOW.values():
            several = [one.all for one in shipped_names() if one.family == layer]
            layers[layer] = dict.fromkeys(sorted(frozenset().union(*several)))
        return cls(library.family, library.version, layers, is_complete=False)

    @property
    def title(self) -> str:
        """The library for people: Open MPI 5.0.11."""
        kind = families().get(self.family)
        return f"{kind.title if kind else self.family} {self.version}"

    @property
    def is_usable(self) -> bool:
        """False if nothing is known of the library's own parameters."""
        return bool(self.layers.get(LIBRARY))

    @property
    def has_runtime_layers(self) -> bool:
        """True if parameters of the run-time are apart from those of the library (Open MPI 5)."""
        return PRTE in self.layers

    def find(self, name: str, *layers: str) -> KnownParameter | None:
        """The parameter of this name, in these layers (none: any); None if it is unknown.

        The name may have that of its project before it, or an older prefix of MPICH.
        """
        for spelling in _spellings(name):
            for layer, params in self.layers.items():
                if spelling in params and (not layers or layer in layers):
                    return KnownParameter(spelling, layer, params[spelling])
            if spelling in self.closed and (not layers or LIBRARY in layers):
                return KnownParameter(spelling, LIBRARY, self.closed[spelling], is_closed=True)
        return None

    def names(self, *layers: str) -> Iterator[str]:
        """The names in these layers (none: in all)."""
        for layer, params in self.layers.items():
            if not layers or layer in layers:
                yield from params
        if not layers or LIBRARY in layers:
            yield from self.closed

    def layer_of(self, name: str) -> str | None:
        """The layer to which a variable or parameter belongs by its prefix; None if by none."""
        for prefixes in (VARIABLE_LAYERS, BELOW):
            for prefix, layer in prefixes.items():
                if name.startswith(prefix):
                    return layer
        return LIBRARY if name.startswith(_OWN_PREFIXES.get(self.family, ())) else None

    def nearest(self, name: str, *layers: str) -> list[str]:
        """Known names that differ from ``name`` by few letters, the nearest first.

        If there are none, those that another version calls so.
        """
        near = nearest(name, (n for n in self.names(*layers) if n != name))
        if near:
            return near
        others = {n for one in shipped_names() if one.family == self.family for n in one.all}
        renamed = (new for other in nearest(name, others) for new in new_names(other))
        return [new for new in renamed if self.find(new, *layers) is not None]

    def other_series(self, name: str) -> tuple[ShippedNames, str] | None:
        """Another series of the same library, or of UCX or libfabric, that has a parameter.

        With the layer that it has there; None if no shipped series has it.
        """
        own = shipped_of(self.family, _numbers(self.version))
        families_of = (self.family, *BELOW.values())
        for series in reversed(shipped_names()):
            if series.family not in families_of:
                continue
            for layer, names in series.names.items():
                if name in names and (series is not own or layer not in self.layers):
                    is_below = series.family in BELOW.values()
                    return series, series.family if is_below else layer
        return None

    def is_foreign(self, name: str) -> str:
        """The title of another MPI family whose variables have this prefix; "" if there is none."""
        for other, prefixes in _OWN_PREFIXES.items():
            if other != self.family and self.layer_of(name) is None and name.startswith(prefixes):
                return families()[other].title
        is_mca = name.startswith(tuple(VARIABLE_LAYERS))
        return families()["openmpi"].title if is_mca and self.family != "openmpi" else ""


def plain_name(name: str) -> str:
    """A parameter's own name: without the prefix of its variable in the environment."""
    prefix = next((p for p in VARIABLE_LAYERS if name.startswith(p)), "")
    return name.removeprefix(prefix)


def _spellings(name: str) -> Iterator[str]:
    yield name
    if project := _PROJECT.match(name):
        yield name[project.end() :]
    for old in ("MPICH_", "MPIR_PARAM_"):
        if name.startswith(old):
            yield f"MPIR_CVAR_{name.removeprefix(old)}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
