"""The launches of a search under each of its MPI libraries, and the switch to another library.

The start-up of a launch is its wall time without the program's own figure, where the program prints
one. Nothing is measured for either. :mod:`autotune.study.library_sentences` says the switch in
words.
"""

from __future__ import annotations

import os
import shlex
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from autotune.measurement.figure_time import covered_s
from autotune.space import Setting
from autotune.space.library_choice import MPI
from runner import files
from runner.mpi.abi import LOADER_PATH, joined_folders
from runner.mpi.discover import adapter
from runner.types import RunRecord

if TYPE_CHECKING:
    from autotune.measurement.other_library import OtherLibrary
    from autotune.measurement.run_history import RunHistory
    from autotune.targets.target import Target
from autotune.study.search_result import LibraryLaunches, SwitchedLibrary


def library_rows(targets: Mapping[str, Target], history: RunHistory) -> list[LibraryLaunches]:
    """One row for each library, that of the default first.

    ``targets`` maps the value of ``mpi`` to the target under it; the first one, of settings that do
    not name a library, counts as the default's.
    """
    first = next(iter(targets))
    settings = [(None if name == first else name, target) for name, target in targets.items()]
    return [_launches(_runs(history, name), name, target) for name, target in settings]


def _runs(history: RunHistory, library: str | None) -> list[RunRecord]:
    """The valid runs under a library; those of a warm-up may be long for other reasons."""
    from autotune.measurement.run_history import WARMUP

    under: dict[str, bool] = {}
    records = []
    for entry in history.entries:
        if entry.key not in under:
            under[entry.key] = Setting.parse(entry.key).get(MPI) == library
        if under[entry.key] and entry.record.valid and entry.kind != WARMUP:
            records.append(entry.record)
    return records


def _launches(records: Sequence[RunRecord], setting: str | None, target: Target) -> LibraryLaunches:
    """Number of valid launches, and the median time outside the program's own figure."""
    outside = [r.wall_s - covered_s(r) for r in records if r.metric_s is not None]
    # A sum over ranks, and a figure that is no time of the program, say nothing of the start.
    has_start = target.objective is None and bool(outside) and min(outside) > 0
    library = target.library
    return LibraryLaunches(
        setting=setting,
        name=library.family,
        version=library.version,
        path=library.bin,
        launcher=library.launcher,
        launches=len(records),
        start_s=statistics.median(outside) if has_start else None,
    )


def switch_to(
    first: Target, other: OtherLibrary, rows: Sequence[LibraryLaunches]
) -> SwitchedLibrary:
    """The switch from the library of ``first`` to another one; both are among ``rows``."""
    row = {row["setting"]: row for row in rows}
    target = other.target
    return SwitchedLibrary(
        before=row[None],
        after=row[other.name],
        variables=(variables := _variables(target)),
        links=_links(target, variables),
        dropped=_terms_of_first(first, target),
        same_family=type(adapter(first.library)) is type(adapter(target.library)),
        timed="wall" if target.app.metric is None and first.objective is None else "figure",
    )


def _terms_of_first(first: Target, target: Target) -> list[str]:
    """What is in force under the first library only: options of the cluster, then settings."""
    options = first.cluster.options(first.library)
    own = [] if options == target.cluster.options(target.library) else [shlex.join(options)]
    before, after = (t.inherited_settings(adapter(t.library)) for t in (first, target))
    own += [f"{name}={value}" for name, value in sorted(before.items()) if name not in after]
    return [words for words in own if words]


def _links(target: Target, variables: Mapping[str, str]) -> str:
    """The folder of autotune's cache in the loader's path; "" if there is none."""
    cache = str(files.cache("mpich"))
    folders = variables.get(LOADER_PATH, "").split(os.pathsep)
    return next((folder for folder in folders if folder.startswith(cache)), "")


def _variables(target: Target) -> dict[str, str]:
    """The variables by which the program loads the target's library."""
    if target.tells_python:
        environment = {LOADER_PATH: os.environ[LOADER_PATH]} if LOADER_PATH in os.environ else {}
        return adapter(target.library).python_variables(environment)
    folders = target.library_folders
    return {LOADER_PATH: joined_folders(folders, os.environ)} if folders else {}
