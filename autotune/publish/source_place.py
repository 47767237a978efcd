"""The MPI library and cluster of published files where a command names none: those of the source.

A program is measured under its own library, which need not be the first one on PATH.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from autotune.anova.classwide_result import RESULTS, ClasswideResult
from autotune.collectives.algorithm_tables import TABLES
from autotune.errors import AutotuneError, UsageError
from autotune.notes import Say, unheard
from autotune.publish.verify import loading_library, published_header
from autotune.store import Store
from autotune.store.keys import LAUNCHER
from runner.errors import RunnerError
from runner.mpi.discover import find_library, launcher_of, libraries
from runner.mpi.library import Library
from runner.mpi.srun import NAME as SRUN
from runner.mpi.srun import PLACEMENT, under_srun


def library_of_source(
    source: str | None, cluster: str, store: Store, mpi: str | None = None
) -> Library:
    """The library that loads what is published: ``mpi`` if it is given (as for ``--mpi``), or else
    the one with which a source (``study:ID``, ...) was measured, or else the first found.

    srun is its launcher if it started the ranks of the study. Raises RunnerError if no library is
    found. What is wrong with the source, its reader says.
    """
    kind, _, ident = (source or "classwide:").partition(":")
    try:
        choice = mpi or _measured_with(kind, ident, cluster, store)
        by_srun = kind == "study" and store.find_study(ident).key.conditions.get(LAUNCHER) == SRUN
    except AutotuneError:
        return find_library(mpi)
    library = find_library(choice)
    return under_srun(library) if by_srun else library


def cluster_of_source(source: str | None, store: Store) -> str:
    """The cluster on which a source was measured; "local" if there is no such source."""
    kind, _, ident = (source or "").partition(":")
    with suppress(AutotuneError):
        if kind == "study":
            return store.find_study(ident).key.cluster
        if kind == "collectives":
            return TABLES.find(ident).cluster
        if kind == "classwide" and ident:
            return RESULTS.find(ident).cluster
    return "local"


def latest_to_publish(cluster: str, say: Say = unheard) -> ClasswideResult | None:
    """The newest proven class-wide setting of a cluster that a file can hold; None without one.

    ``say`` is told of results that cannot be read.
    """
    return RESULTS.latest(cluster, fits=lambda one: one.proven and one.programs is None, say=say)


def _measured_with(kind: str, ident: str, cluster: str, store: Store) -> str | None:
    """The value of ``--mpi`` for the library of a source; None if it is not here."""
    if kind == "study":
        key = store.find_study(ident).key.mpi
        with suppress(RunnerError):  # It may have gone, or may have another version now.
            library = find_library(key.path)
            if (library.family, library.version) == (key.family, key.version):
                return key.path
        return launcher_of(key.family, key.version)
    if kind == "collectives":
        table = TABLES.find(ident)
        return launcher_of(table.mpi["name"], table.mpi["version"])
    result = RESULTS.find(ident) if ident else latest_to_publish(cluster)
    mpi = {} if result is None else result.mpi  # Empty if nothing was measured.
    return launcher_of(mpi.get("name", ""), mpi.get("version", ""))


def files_by_library(
    paths: Sequence[Path], mpi: str | None = None
) -> list[tuple[Library, list[Path]]]:
    """Published files by the library that loads each of them here, in the order of ``paths``.

    That is ``mpi`` if it is given (as for ``--mpi``), or else the installed library of the file's
    own series, else one of its family, else the first library found; srun is its launcher for a
    file with settings of srun. Raises RunnerError if no library is found.
    """
    installations = () if mpi else libraries()
    groups: dict[str, tuple[Library, list[Path]]] = {}
    for path in paths:
        library = _loading(path, installations, mpi)
        groups.setdefault(f"{library.bin} {library.launcher}", (library, []))[1].append(path)
    return list(groups.values())


def _loading(path: Path, installations: Sequence[Library], mpi: str | None) -> Library:
    try:
        header = published_header(path)
    except UsageError:  # The file is gone or edited, which its state says.
        return find_library(mpi)
    first = None if mpi else loading_library(header, installations)
    library = find_library(mpi if first is None else first.launcher)
    is_for_srun = not header.content.groups.get("placement", {}).keys().isdisjoint(PLACEMENT)
    return under_srun(library) if is_for_srun else library
