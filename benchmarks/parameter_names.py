"""Whether misspelt, inactive and right parameters are told apart, on those of installed libraries.

    python -m benchmarks.parameter_names [--number 600] [--seed 1] [MPI...]
    python -m benchmarks.parameter_names --write FAMILY-SERIES --source TEXT MPI...

Parameters are drawn from all installed libraries (or from those that are named): of the MPI
library, PRRTE, PMIx, UCX and libfabric. Of each drawn name one letter is changed; the nearest name
that is given must be the drawn one. Unchanged names with their defaults must not be faults. Whether
an inactive parameter is named is judged by the library: one that it lists, but does not register in
a launch whose line chooses other components, has no effect there.

The second form writes the shipped table of names of a series from installations.
"""

from __future__ import annotations

import argparse
import os
import random
import string
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.check.gather import Start, gather
from autotune.check.parameter_requests import parameter_faults
from autotune.nearest import edits
from autotune.parameters.catalogue import BELOW, Catalogue
from autotune.parameters.fault import Fault, faults_of
from autotune.parameters.request import Request, ValuePlace
from autotune.parameters.shipped import FOLDER, names_text
from benchmarks.common import run_benchmark
from runner.mpi.discover import adapter, find_library, libraries
from runner.mpi.library import Library
from runner.mpi.openmpi.shown import SHOW_PARAMETER, parse_run_values
from runner.mpi.output import output_of
from runner.mpi.transport_libraries import transport_libraries
from runner.probe.command import empty_program
from runner.types import LIBRARY

PLACE = Path(__file__).parents[1] / "autotune" / "parameters" / FOLDER
LINES = (("pml", "ucx"), ("pml", "ob1"), ("btl", "self,tcp"))
"""Choices under which the registered parameters are asked for."""
WORDS = {
    "named": "named",
    "right": "right nearest name",
    "tied": "two equally near names, the second is right",
    "valid": "valid after the change",
}
OPENED_FIRST = frozenset({"pml", "btl", "mtl", "bml", "coll", "smsc"})
"""Frameworks that MPI_Init opens; others are opened later, or by the launcher alone."""
_RUN_S = 60.0


@dataclass(frozen=True)
class Drawn:
    """A parameter of a library, by its number in the list of catalogues."""

    library: int
    layer: str
    name: str


def catalogues(places: Sequence[str]) -> list[Catalogue]:
    """The catalogues of the installed libraries, or of those that are named."""
    found = [find_library(place) for place in places or [one.launcher for one in libraries()]]
    return [Catalogue.of(library) for library in found]


def pool(every: Sequence[Catalogue]) -> list[Drawn]:
    """All parameters of all catalogues."""
    return [
        Drawn(number, layer, name)
        for number, one in enumerate(every)
        for layer, params in one.layers.items()
        for name in sorted(params)
    ]


def changed(name: str, generator: random.Random) -> str:
    """The name with one of its letters or digits changed to another one of the same kind."""
    places = [at for at, sign in enumerate(name) if sign != "_"]
    at = generator.choice(places)
    kinds = (string.ascii_lowercase, string.ascii_uppercase, string.digits)
    letters = next(kind for kind in kinds if name[at] in kind)
    return name[:at] + generator.choice(letters.replace(name[at], "")) + name[at + 1 :]


def request(one: Drawn, name: str, every: Sequence[Catalogue]) -> Request:
    """The parameter with its default as it stands on a launch line."""
    info = every[one.library].layers[one.layer].get(one.name)
    place = ValuePlace.EXPORT if one.layer in BELOW.values() else ValuePlace.LINE
    return Request(name, info.default if info is not None else "", place, one.layer, name, name)


def faults(one: Drawn, name: str, every: Sequence[Catalogue]) -> list[Fault]:
    """The faults of one parameter alone."""
    return faults_of([request(one, name, every)], every[one.library], commutes=True)


def registered(library: Library, assignment: tuple[str, str]) -> set[str]:
    """The parameters that Open MPI registers in a launch of two ranks with this choice; empty if
    the launch fails."""
    own = adapter(library)
    environment = {**os.environ, **own.identify_environment, **own.python_variables({})}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "values.txt")
        words = [library.launcher, "-n", "2", "--mca", *assignment]
        words += ["--mca", "mpi_show_mca_params", "all", "--mca", SHOW_PARAMETER, str(file)]
        output_of([*words, *empty_program(library)], environment, timeout_s=_RUN_S)
        return set(parse_run_values(file.read_text())[1]) if file.exists() else set()


def misspelt(drawn: Sequence[Drawn], every: Sequence[Catalogue], seed: int) -> Counter[str]:
    """What becomes of the changed names."""
    generator = random.Random(seed)
    counts: Counter[str] = Counter()
    for one in drawn:
        name = changed(one.name, generator)
        own = every[one.library]
        if own.find(name) is not None or own.other_series(name) is not None:
            counts["valid"] += 1
            continue
        kinds = faults(one, name, every)
        named = [fault for fault in kinds if fault.kind in ("misspelt", "unknown", "version")]
        counts["named"] += bool(named)
        near = named[0].near if named else ()
        right = near[:1] == (one.name,)
        tied = not right and one.name in near and edits(name, near[0]) == 1
        counts["right"] += right
        counts["tied"] += tied
        if not right and not tied:
            print(f"  not right: {name} (of {one.name}): {near}")
    return counts


def alarms(drawn: Sequence[Drawn], every: Sequence[Catalogue]) -> Iterator[tuple[Drawn, Fault]]:
    """The faults that right parameters are said to have, except that they have no effect."""
    for one in drawn:
        for fault in faults(one, one.name, every):
            if fault.kind != "no_effect" and not fault.is_harmless:
                yield one, fault


def inactive(places: Sequence[str]) -> Counter[str]:
    """Parameters of Open MPI that a launch does not register, and how many are named: by the rules
    alone, and by a check that watches a start with all of them on its line."""
    counts: Counter[str] = Counter()
    for place in places or [one.launcher for one in libraries()]:
        library = find_library(place)
        if library.family != "openmpi":
            continue
        own = Catalogue.of(library)
        for assignment in LINES:
            seen = registered(library, assignment)
            names = [n for n in library.params if seen and _is_opened_first(library, n, seen)]
            choice = Request(*assignment, ValuePlace.LINE, LIBRARY, assignment[0])
            counts["not registered"] += len(names)
            for name in names:
                tried = Request(name, library.params[name].default, ValuePlace.LINE, LIBRARY, name)
                kinds = {f.kind for f in faults_of([choice, tried], own, commutes=True)}
                counts["named without a launch"] += "no_effect" in kinds
            counts["named by a check"] += len(_named_by_check(library, assignment, names))
    return counts


def _is_opened_first(library: Library, name: str, seen: set[str]) -> bool:
    info = library.params[name]
    is_own = not info.synonym_of and info.component not in ("", "base")
    return is_own and name not in seen and info.framework in OPENED_FIRST


def _named_by_check(
    library: Library, assignment: tuple[str, str], names: Sequence[str]
) -> set[str]:
    """Those of ``names`` that a check of a line with all of them says to have no effect."""
    words = [library.launcher, "-n", "2", "--mca", *assignment]
    for name in names:
        words += ["--mca", name, library.params[name].default or "0"]
    facts = gather([*words, "true"], start=Start.PROBE)
    faults = (fault for fault, _ in parameter_faults(facts))
    return {f.request.name for f in faults if f.kind == "no_effect"}.intersection(names)


def write_names(series: str, source: str, places: Sequence[str]) -> Path:
    """Write the table of names of a series, those of all these installations together."""
    layers: dict[str, set[str]] = {}
    for place in places:
        library = find_library(place)
        own = adapter(library)
        if series.startswith(("ucx", "libfabric")):
            below = {one.name.lower(): one.params for one in transport_libraries(library)}
            layers.setdefault(LIBRARY, set()).update(below[series.split("-")[0]])
            continue
        layers.setdefault(LIBRARY, set()).update(library.params, own.closed_parameters())
        for kind, params in own.layered_parameters().items():
            layers.setdefault(kind, set()).update(params)
    file = PLACE / f"{series}.txt"
    file.write_text(names_text(layers, source), encoding="utf-8")
    return file


def main() -> None:
    """Print the table, or write a table of names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("places", nargs="*", metavar="MPI")
    parser.add_argument("--number", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", metavar="FAMILY-SERIES")
    parser.add_argument("--source", default="")
    options = parser.parse_args()
    if options.write:
        print(write_names(options.write, options.source, options.places))
        return
    every = catalogues(options.places)
    parameters = pool(every)
    generator = random.Random(options.seed)
    drawn = generator.sample(parameters, min(options.number, len(parameters)))
    titles = ", ".join(one.title for one in every)
    print(f"{len(parameters)} parameters of {titles}; {len(drawn)} drawn, seed {options.seed}")
    for words, count in misspelt(drawn, every, options.seed).items():
        print(f"one letter changed, {WORDS[words]}: {count}")
    wrong = list(alarms(generator.sample(parameters, len(drawn)), every))
    for one, fault in wrong:
        print(f"  false: {one.layer} {one.name}: {fault.statement}")
    print(f"right parameters with an alarm: {len(wrong)} of {len(drawn)}")
    for words, count in inactive(options.places).items():
        print(f"inactive, {words}: {count}")


if __name__ == "__main__":
    run_benchmark(main)
