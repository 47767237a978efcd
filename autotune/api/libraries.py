"""``autotune.compare_libraries``: one program under two MPI libraries."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

from autotune.api.compare import SettingLike, comparison_request
from autotune.api.options import (
    Budget,
    Lines,
    SpaceLike,
    StoreLike,
    TargetOptions,
    opened,
    seconds_of,
    space_of,
    target_request,
)
from autotune.api.target import find_target
from autotune.errors import UsageError
from autotune.study.comparison import ComparisonOutcome, compare_settings
from autotune.study.events import Note, Watcher
from autotune.study.second_library import SecondLibrary
from autotune.targets.build import foreign_build
from autotune.targets.launcher_line import parse_launcher_line, same_library
from autotune.targets.target import Say, Target, TargetRequest
from runner.mpi.base import PYTHON_LIBRARY
from runner.mpi.discover import adapter, find_library


def library_targets(
    request: TargetRequest, libraries: Sequence[str], second_program: str | None, say: Say
) -> tuple[Target, Target]:
    """The targets of a program under two libraries, which are named as in ``--mpi``.

    ``second_program`` is the program's build for the second library; its arguments are the same.
    Raises UsageError for another number of libraries, the same one twice, a program that is linked
    with a library of another family, and everything that is wrong with the target.
    """
    if len(libraries) != 2:
        raise UsageError(
            f"{len(libraries)} MPI libraries were given ({', '.join(libraries)}); expected two to "
            "compare, or one"
        )
    one, other = (find_library(name) for name in libraries)
    if same_library(one, other):
        raise UsageError(
            f"{libraries[0]} and {libraries[1]} are the same MPI library ({one.family} "
            f"{one.version} in {one.bin}); expected two different ones.\nautotune doctor lists "
            "those that are found"
        )
    notes: list[str] = []
    first = find_target(replace(request, mpi=libraries[0]), notes.append)
    words = request if second_program is None else _with_program(request, second_program)
    second = find_target(replace(words, mpi=libraries[1]), notes.append)
    for target in (first, second):
        if wrong := foreign_build(target.program, target.library):
            raise UsageError(
                f"{wrong}.\nGive a build for each library: -- PROGRAM is the one for the first, "
                "--program-b PATH the one for the second"
            )
    for note in dict.fromkeys(notes):
        say(note)
    return _with_own_library(first), _with_own_library(second)


def _with_program(request: TargetRequest, path: str) -> TargetRequest:
    """The request with another program and the same launcher and arguments."""
    if not request.program:
        raise UsageError(
            "a build for the second library needs a program of your own (-- PROGRAM ARGS); an "
            "application known by name runs under both libraries"
        )
    words = tuple(request.program)
    own = parse_launcher_line(words, request.command).program
    return replace(request, program=(*words[: len(words) - len(own)], path, *own[1:]))


def _with_own_library(target: Target) -> Target:
    """The target, with mpi4py loading the launcher's library whatever the environment names."""
    inherited = {name: value for name, value in os.environ.items() if name != PYTHON_LIBRARY}
    around = target.surroundings
    own = adapter(target.library).python_variables(inherited)
    return replace(target, surroundings=replace(around, env=around.env | own))


def compare_libraries(
    first: str,
    second: str,
    program: Sequence[str] | None = None,
    *,
    settings: tuple[SettingLike, SettingLike] = ("default", "default"),
    second_program: str | None = None,
    space: SpaceLike = None,
    budget: Budget = None,
    runs: int | None = None,
    pairs: int | None = None,
    min_gain: float = 0.02,
    seed: int = 0,
    guard: bool = True,
    remeasure: bool = False,
    store: StoreLike = None,
    watch: Watcher | None = None,
    **target: Unpack[TargetOptions],
) -> ComparisonOutcome:
    """Compare a program under the MPI library ``second`` with the same one under ``first``.

    Both are named as in ``mpi`` of a target.  ``settings`` are those under the first and the second
    library; ``second_program`` is the program's build for the second.  All else is as in
    :func:`autotune.compare`; of the outcome, ``faster`` is the side that is faster ("a" or "b").

    Raises UsageError for a wrong request, WorkError if the program does not run under ``first``,
    BudgetTooSmall if the budget does not allow one pair.
    """
    watch = watch or Lines()
    tell = watch
    if "mpi" in target:
        raise UsageError("mpi= names one library; the two libraries are the first two arguments")
    targets = library_targets(
        target_request(program, target),
        (first, second),
        second_program,
        lambda words: tell(Note(words)),
    )
    with opened(store) as database:
        request = comparison_request(
            *settings,
            targets[0],
            space_of(targets[0], space),
            database,
            other=SecondLibrary(targets[1], space_of(targets[1], space)),
            pairs=pairs,
            min_gain=min_gain,
            budget_s=seconds_of(budget),
            max_runs=runs,
            seed=seed,
            guard=guard,
            remeasure=remeasure,
            watch=watch,
        )
        return compare_settings(request, database)
