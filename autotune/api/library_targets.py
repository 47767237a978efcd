"""The targets of one program under several MPI libraries, and their spaces as one."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from autotune.api.target import target_of_any_build
from autotune.errors import UsageError
from autotune.measurement.other_library import OtherLibrary
from autotune.notes import Note, Say
from autotune.space import LibraryChoice, Space
from autotune.space.named_space import parts_for
from autotune.targets.build import foreign_build, library_folders, names_library
from autotune.targets.launcher_line import parse_launcher_line, same_library
from autotune.targets.request import TargetRequest
from autotune.targets.target import Target
from runner.mpi.base import PYTHON_LIBRARY
from runner.mpi.discover import adapter, find_library


def compared_targets(
    request: TargetRequest, libraries: Sequence[str], second_program: str | None, say: Say
) -> tuple[Target, Target]:
    """The targets of a program under two libraries, which are named as in ``--mpi``.

    ``second_program`` is the program's build for the second library; its arguments are the same.
    Raises UsageError for another number of libraries, the same one twice, a program that is linked
    with a library of another binary interface, and everything that is wrong with the target.
    """
    if len(libraries) != 2:
        raise UsageError(
            f"{len(libraries)} MPI libraries were given ({', '.join(libraries)}); expected two to "
            "compare, or one",
            code="mpi.count",
        )
    words = request if second_program is None else _with_program(request, second_program)
    notes: list[Note] = []
    _require_different(libraries)
    first = _target_under(request, libraries[0], notes)
    second = _target_under(words, libraries[1], notes)
    for target in (first, second):
        if wrong := foreign_build(target.program, target.library):
            raise UsageError(
                f"{wrong}.\nGive a build for each library: -- PROGRAM is the one for the first, "
                "--program-b PATH the one for the second",
                code="program.other_abi",
            )
    for note in dict.fromkeys(notes):
        say(note)
    return _with_own_library(first), _with_own_library(second)


def searched_targets(request: TargetRequest, libraries: Sequence[str], say: Say) -> list[Target]:
    """The targets of one program under all these libraries; the first is that of the default.

    Raises UsageError for libraries that a setting cannot tell apart, for a program that cannot run
    under all of them, and everything that is wrong with the target.
    """
    _require_different(libraries)
    notes: list[Note] = []
    library_targets = [_target_under(request, name, notes) for name in libraries]
    _require_names(library_targets)
    _require_no_options(library_targets)
    targets = [_with_own_library(target) for target in library_targets]
    for note in dict.fromkeys(notes):
        say(note)
    return targets


def chosen_spaces(
    targets: Sequence[Target], name: str | None
) -> tuple[Space, tuple[OtherLibrary, ...]]:
    """The space of a search under all targets, and the targets after the first with their own.

    Without ``name`` each library has the space of a search under it alone. The parts of ``name``
    join the libraries that they are for. Raises UsageError for a part that no library can use.
    """
    parts = {part.strip() for part in name.split("+")} if name else set()
    spaces = []
    for target in targets:
        fitting = None if name is None else parts_for(name, target.library)
        parts -= set((fitting or "").split("+"))
        spaces.append(Space("", ()) if fitting == "" else target.space(fitting))
    if parts:
        raise UsageError(
            f"--space {'+'.join(sorted(parts))} is for none of the MPI libraries of this search "
            f"({', '.join(f'{t.library.family} {t.library.version}' for t in targets)})",
            code="space.for_no_library",
        )
    others = tuple(
        OtherLibrary(target, space) for target, space in zip(targets[1:], spaces[1:], strict=True)
    )
    return LibraryChoice.of(spaces[0], {other.name: other.space for other in others}), others


def _target_under(request: TargetRequest, library: str, notes: list[Note]) -> Target:
    """The target under a library; ``notes`` gets what is said of it."""
    target_notes: list[Note] = []
    target = target_of_any_build(request.model_copy(update={"mpi": library}), target_notes.append)
    notes += [note for note in target_notes if note.code != "mpi.chosen"]
    return target


def _require_different(libraries: Sequence[str]) -> None:
    """Raise UsageError for the same library twice."""
    libraries_by_name = [(name, find_library(name)) for name in libraries]
    for (one_name, one), (other_name, other) in combinations(libraries_by_name, 2):
        if same_library(one, other):
            raise UsageError(
                f"{one_name} and {other_name} are the same MPI library ({one.family} "
                f"{one.version} in {one.bin}); expected two different ones.\n"
                "To list those that are found:  autotune doctor",
                code="mpi.same",
            )


def _require_names(targets: Sequence[Target]) -> None:
    """Raise UsageError for two builds of one version, which settings cannot tell apart."""
    for one, other in combinations([target.library for target in targets], 2):
        if (one.family, one.version) == (other.family, other.version):
            raise UsageError(
                f"the libraries in {one.bin} and {other.bin} are both {one.family} {one.version}, "
                "and a setting names a library by its family and version.\n"
                "To compare two builds of one version:  autotune compare --mpi P --mpi P",
                code="mpi.same",
            )


def _require_no_options(targets: Sequence[Target]) -> None:
    """Raise UsageError for options of one launcher that others may not understand."""
    first, *_ = targets
    families = {type(adapter(target.library)) for target in targets}
    if first.options and len(families) > 1:
        raise UsageError(
            f"the launcher line has options of one MPI library ({shlex.join(first.options)}), and "
            "the program runs under several; leave them out (mapping and binding may stay)",
            code="launcher.library_options",
        )


def _with_program(request: TargetRequest, path: str) -> TargetRequest:
    """The request with another program and the same launcher and arguments."""
    if not request.program:
        raise UsageError(
            "a build for the second library needs a program of your own (-- PROGRAM ARGS); an "
            "application known by name runs under both libraries",
            code="program.second_build",
        )
    words = tuple(request.program)
    own = parse_launcher_line(words, request.command).program
    program = (*words[: len(words) - len(own)], path, *own[1:])
    return request.model_copy(update={"program": program})


def _with_own_library(target: Target) -> Target:
    """The target, with the program loading the launcher's library whatever it finds first.

    mpi4py is told by variables, whatever the environment names; a binary by the loader's path.
    """
    environment = {name: value for name, value in os.environ.items() if name != PYTHON_LIBRARY}
    around = target.surroundings
    own = adapter(target.library).python_variables(environment)
    return replace(
        target,
        surroundings=replace(around, env=around.env | own),
        library_folders=library_folders(target.program, target.library),
        tells_python=not names_library(target.program),
    )
