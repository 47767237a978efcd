"""Library binding: a target's program loads the library of the target's launcher, or is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from autotune.notes import Say
from autotune.targets.build import library_folders, linked_note, require_own_build
from autotune.targets.mpi_need import need_of
from autotune.targets.target import Target
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.mpi.linkage import identify_file


def bound_to_library(target: Target, option: str, say: Say) -> Target:
    """The target, whose program loads the library of its launcher and no other one.

    A program that is linked with another version of the same interface gets the launcher's library
    first in the loader's path. ``option`` is what named the library, for messages; ``say`` gets a
    note on such a program. Raises UsageError if the program cannot load the library.
    """
    program, library = target.program, target.library
    require_own_build(program, library, option)
    folders = _folders(program, library, option)
    if other := linked_note(program, library):
        say(other)
    return dataclasses.replace(target, library_folders=folders) if folders else target


def _folders(program: Sequence[str], library: Library, option: str) -> tuple[str, ...]:
    """As :func:`library_folders`, and empty where the program has this version of the library."""
    need = need_of(program)
    if need is None or not need.is_fixed:
        return ()
    if adapter(library).file_for(need.library.name) is None:
        return ()  # The launcher may know where its library is.
    if need.library.place:
        linked = identify_file(need.library.place)
        if linked is None or (linked.family, linked.version) == (library.family, library.version):
            return ()
    return library_folders(program, library, option)
