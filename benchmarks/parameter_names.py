"""Writes the shipped table of names of parameters of a series, those of all named installations.

python -m benchmarks.parameter_names FAMILY-SERIES --source TEXT MPI...

Series are those of MPI libraries, UCX and libfabric. ``--source`` says in the table's first line
from which installations it was made.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from autotune.parameters.shipped import FOLDER, names_text
from benchmarks.common import run_benchmark
from runner.mpi.discover import adapter, find_library
from runner.mpi.transport_libraries import transport_libraries
from runner.types import LIBRARY

PLACE = Path(__file__).parents[1] / "autotune" / "parameters" / FOLDER


def names_of(series: str, places: Sequence[str]) -> dict[str, set[str]]:
    """The names of all these installations, by layer."""
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
    return layers


def main() -> None:
    """Write the table and print its path."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("series", metavar="FAMILY-SERIES")
    parser.add_argument("places", nargs="+", metavar="MPI")
    parser.add_argument("--source", required=True)
    given = parser.parse_args()
    file = PLACE / f"{given.series}.txt"
    file.write_text(names_text(names_of(given.series, given.places), given.source), "utf-8")
    print(file)


if __name__ == "__main__":
    run_benchmark(main)
