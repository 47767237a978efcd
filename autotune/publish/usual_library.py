"""The MPI library of a command for published files that names none: that of the file or its source.

A program is measured under its own library, which need not be the first one on PATH.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from autotune.anova.classwide_result import RESULTS
from autotune.collectives.algorithm_tables import TABLES
from autotune.errors import AutotuneError
from autotune.publish.verify import loading_library, published_header
from autotune.store import Store
from runner.mpi.discover import find_library, launcher_of, libraries
from runner.mpi.library import Library


def library_of_source(source: str | None, cluster: str, store: Store) -> Library:
    """The library with which a source (``study:ID``, ...) was measured, or else the first found.

    Raises RunnerError if no library is found. What is wrong with the source, its reader says.
    """
    kind, _, ident = (source or "classwide:").partition(":")
    try:
        family, version = _measured_with(kind, ident, cluster, store)
    except AutotuneError:
        return find_library()
    return find_library(launcher_of(family, version))


def _measured_with(kind: str, ident: str, cluster: str, store: Store) -> tuple[str, str]:
    if kind == "study":
        key = store.find_study(ident).key.mpi
        return key.family, key.version
    if kind == "collectives":
        table = TABLES.find(ident)
        return table.mpi["name"], table.mpi["version"]
    result = RESULTS.find(ident) if ident else RESULTS.latest(cluster, fits=lambda one: one.proven)
    return ("", "") if result is None else (result.mpi["name"], result.mpi["version"])


def library_of_files(paths: Sequence[Path]) -> Library:
    """The library that loads the first of these published files here, or else the first found.

    Raises RunnerError if no library is found, and UsageError for a file that is none.
    """
    installations = libraries()
    for path in paths:
        library = loading_library(published_header(path), installations)
        if library is not None:
            return find_library(library.launcher)
    return find_library()
