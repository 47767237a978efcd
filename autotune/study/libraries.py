"""The MPI libraries of a study: one program under several, and what its runs show of each.

The study is that of the first library. In the run history a setting of another library also names
that library, so the same values may be run under several, and no other study takes such a run for
one of the first library. Everything else is as in a study of one library: blocks, looks,
continuation. A comparison has one other library, that of B; a search may have several.

The second part has a row for each library of a search. The start-up of a launch is its wall time
without the program's own figure, where the program prints one. The last part says what the
recommended library needs. Nothing is measured for either.
"""

from __future__ import annotations

import os
import shlex
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from autotune.space import Setting, Space
from autotune.space.library_choice import MPI
from autotune.study.evaluator import Side
from autotune.study.parts import LibraryLaunches, LibrarySide, SwitchedLibrary
from autotune.study.run_history import WARMUP, RunHistory
from autotune.study.study_key import study_key
from autotune.targets.target import Target
from runner import files
from runner.files.paths import real_path
from runner.mpi.abi import LOADER_PATH, joined_folders
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.types import RunRecord


@dataclass(frozen=True)
class OtherLibrary:
    """The same program under another library, or its build for it.

    ``space`` has the parameters of the settings under it.
    """

    target: Target
    space: Space

    @property
    def name(self) -> str:
        """The library as the run history names it."""
        return library_name(self.target.library.family, self.target.library.version)

    def under(self, setting: Setting) -> Setting:
        """``setting`` as the run history names it: with this library."""
        return setting.with_values({MPI: self.name})

    def cheap(self) -> OtherLibrary:
        """The same library with the program in its cheap form (:meth:`Target.cheap`)."""
        return replace(self, target=self.target.cheap())

    def identity(self, first: Target, strategy: str, guard: bool) -> dict[str, Any]:
        """The part of the study's identity that is this library's, in JSON types.

        The directories are part of it: two builds of one version are two libraries here.
        """
        target = self.target
        key = study_key(target, self.space, strategy, {}, 0, guard)
        return {
            "second": key.hash,
            "libraries": [str(real_path(t.library.bin)) for t in (first, target)],
        }


def library_name(family: str, version: str) -> str:
    """Family and version in one word: mpich-5.0.2."""
    return f"{family}-{version}"


def described(library: Library, program: str) -> LibrarySide:
    """A side for the JSON document: the library's name, version and path, and the program."""
    return LibrarySide(
        name=library.family, version=library.version, path=library.bin, program=program
    )


@contextmanager
def sides_of(others: Sequence[OtherLibrary], guard: bool) -> Iterator[dict[str, Side]]:
    """The sides of other libraries by their names, while their runners are open."""
    with ExitStack() as stack:
        yield {
            other.name: Side(
                stack.enter_context(other.target.runner(guard)), other.target, other.space
            )
            for other in others
        }


def library_rows(targets: Mapping[str, Target], history: RunHistory) -> list[LibraryLaunches]:
    """One row for each library, that of the default first.

    ``targets`` maps the value of ``mpi`` to the target under it; the first one, of settings that do
    not name a library, counts as the default's.
    """
    first = next(iter(targets))
    named = [(None if name == first else name, target) for name, target in targets.items()]
    return [_launches(_runs(history, name), name, target) for name, target in named]


def _runs(history: RunHistory, library: str | None) -> list[RunRecord]:
    """The valid runs under a library; those of a warm-up may be long for other reasons."""
    under: dict[str, bool] = {}
    found = []
    for entry in history.entries:
        if entry.key not in under:
            under[entry.key] = Setting.parse(entry.key).get(MPI) == library
        if under[entry.key] and entry.record.valid and entry.kind != WARMUP:
            found.append(entry.record)
    return found


def _launches(records: Sequence[RunRecord], setting: str | None, target: Target) -> LibraryLaunches:
    """Number of valid launches, and the median time outside the program's own figure."""
    outside = [r.wall_s - r.metric_s for r in records if r.metric_s is not None]
    # A sum over ranks, and a figure that is no time of the program, say nothing of the start.
    known = target.objective is None and bool(outside) and min(outside) > 0
    library = target.library
    return LibraryLaunches(
        setting=setting,
        name=library.family,
        version=library.version,
        path=library.bin,
        launcher=library.launcher,
        launches=len(records),
        start_s=statistics.median(outside) if known else None,
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
        dropped=_dropped(first, target),
        same_family=type(adapter(first.library)) is type(adapter(target.library)),
        timed="wall" if target.app.metric is None and first.objective is None else "figure",
    )


def _dropped(first: Target, target: Target) -> list[str]:
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
        inherited = {LOADER_PATH: os.environ[LOADER_PATH]} if LOADER_PATH in os.environ else {}
        return adapter(target.library).python_variables(inherited)
    folders = target.library_folders
    return {LOADER_PATH: joined_folders(folders, os.environ)} if folders else {}
