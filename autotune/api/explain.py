"""``autotune explain``: one parameter on this machine."""

from __future__ import annotations

import shlex

from autotune.config.site import site_store
from autotune.errors import AutotuneError, UsageError
from autotune.parameters.catalogue import BELOW, Catalogue, plain_name
from autotune.parameters.explanation import ParameterExplanation, explain, meaning_in_spaces
from autotune.parameters.measured_effect import MeasuredEffect
from autotune.parameters.surroundings import surrounding_requests
from autotune.space.new_names import NEW_VALUES, new_names
from runner import files
from runner.errors import RunnerError
from runner.files.paths import exists
from runner.mpi.discover import adapter, families, find_library
from runner.mpi.library import Library

_FAMILY_PREFIXES = {"I_MPI_": "impi", "MPIR_CVAR_": "mpich", "MPICH_": "mpich"}


def explain_parameter(
    name: str, mpi: str | None = None, store: str | None = None, quick: bool = False
) -> ParameterExplanation:
    """What is known of a parameter here; ``quick`` starts no ranks to see the transport.

    Raises UsageError for a name that no library here has, with the nearest names, and
    RunnerUsageError for an MPI that is not installed.
    """
    library = _library(name, mpi)
    catalogue = Catalogue.of(library)
    plain = plain_name(name.strip())
    layer = catalogue.layer_of(name)
    is_below = layer is not None and layer in BELOW.values()
    parameter = catalogue.find(plain, *([layer] if layer is not None and is_below else []))
    if parameter is None:
        raise UsageError(_unknown(plain, catalogue), code="parameter.unknown")
    meaning = meaning_in_spaces(parameter.name)
    is_own = parameter.info is None or parameter.info.source == "default"
    return explain(
        parameter,
        catalogue,
        surrounding_requests(library, catalogue),
        "" if quick or not _depends(parameter.name, library) else _transport(library),
        _measured(meaning.names, store),
        meaning,
        None if is_own else adapter(library).own_default(parameter.name),
    )


def _library(name: str, mpi: str | None) -> Library:
    """The library of the name's family, or the one that is asked for.

    A library of that family that is not installed is known by its shipped names.
    """
    family = next((f for p, f in _FAMILY_PREFIXES.items() if name.startswith(p)), None)
    if mpi is not None or family is None:
        return find_library(mpi)
    try:
        return find_library(family)
    except RunnerError:
        versions = {"impi": "2021", "mpich": "5.0"}
        return Library(family, versions[family], "", "")


def _depends(name: str, library: Library) -> bool:
    """Whether the transport decides if a parameter acts."""
    if not library.launcher:
        return False
    own = adapter(library)
    return any(own.idle_under([name], transport) for transport in own.transports())


def _transport(library: Library) -> str:
    """The transport that two ranks use; "" if it is not shown."""
    from autotune.targets.startup import transport_in_force

    try:
        return transport_in_force(library, ())
    except RunnerError:
        return ""


def _measured(names: frozenset[str], store: str | None) -> MeasuredEffect:
    """What the results database says; nothing if there is none."""
    if store is None and not site_store() and not exists(files.data("results.db")):
        return MeasuredEffect()
    # Only here: without a database its library is not loaded.
    from autotune.parameters.measured import measured_effect
    from autotune.store.store import Store

    try:
        with Store.open_to_read(store) as database:
            return measured_effect(database, names)
    except AutotuneError as problem:
        # The rest of the answer does not need it.
        return MeasuredEffect(problem=problem.code)


def _unknown(name: str, catalogue: Catalogue) -> str:
    """The message about a name that is not known, with the nearest ones."""
    words = f"{catalogue.title} has no parameter {name}"
    for spelling in new_names(name):
        if catalogue.find(spelling) is not None:
            line = f"autotune explain {shlex.quote(spelling)}"
            return f"{words}; it is called {spelling} here\n  {line}"
    other = catalogue.other_series(name)
    if other is not None:
        kind = families().get(other[0].family)
        words += f"; {kind.title if kind else other[0].family} {other[0].series} has it"
        pairs = ((v, new) for (old, v), new in NEW_VALUES.items() if old == name)
        for value, (new, new_value) in pairs:
            if catalogue.find(new) is not None:
                words += f".  Here {new}={new_value} means what {name}={value} does there"
                return f"{words}\n  autotune explain {shlex.quote(new)}"
        return words
    near = catalogue.nearest(name) or _similar(name, catalogue)
    if not near:
        return f"{words}, nor one with a similar name; autotune space discover TEXT searches them"
    return f"{words}; did you mean {' or '.join(near)}?\n  autotune explain {shlex.quote(near[0])}"


def _similar(name: str, catalogue: Catalogue) -> list[str]:
    import difflib

    return difflib.get_close_matches(name, list(catalogue.names()), n=3, cutoff=0.7)
