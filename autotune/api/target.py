"""Looks up a target on this machine, with autotune's own published files out of force."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from autotune.errors import UsageError
from autotune.notes import Note, Say
from autotune.targets.build import title
from autotune.targets.library_binding import bound_to_library
from autotune.targets.request import TargetRequest
from autotune.targets.resolve import resolve
from autotune.targets.target import Surroundings, Target
from runner.mpi.library import Library


def to_stderr(note: Note) -> None:
    """The words of a note on standard error."""
    print(note.words, file=sys.stderr, flush=True)


def silent_say(note: Note) -> None:
    """Say nothing: for users who want the result only."""


def find_target(request: TargetRequest, say: Say = to_stderr) -> Target:
    """Look up the target of a request; raises UsageError for everything that is wrong with it.

    Files that autotune published are out of force wherever a default is measured, so variables that
    name them are removed from this process's environment.
    """
    target = target_of_any_build(request, say)
    option = f"--mpi {request.mpi}" if request.mpi else (request.program or ("",))[0]
    return bound_to_library(target, option, say)


def common_library(targets: Sequence[Target], advice: str) -> Library:
    """The MPI library of all targets, of which a result is to speak.

    Raises UsageError with ``advice`` if there are several.
    """
    libraries = {target.library.launcher: target.library for target in targets}
    first, *others = libraries.values()
    if others:
        names = ", ".join(map(title, libraries.values()))
        raise UsageError(
            f"these programs load several MPI libraries ({names}), and the result is to be of "
            f"one; {advice}",
            code="mpi.several",
        )
    return first


def target_of_any_build(request: TargetRequest, say: Say) -> Target:
    """As :func:`find_target`, whatever MPI library the program was built for."""
    notes: list[Note] = []
    try:
        return resolve(
            request, lambda library: neutral_surroundings(library, notes.append), notes.append
        )
    finally:
        for note in sorted(notes, key=lambda note: note.code != "mpi.chosen"):
            say(note)


def neutral_surroundings(library: Library, say: Say) -> Surroundings:
    """What keeps this user's published files out of force in launches of ``library``.

    Variables that such files have set are removed from this process's environment. Raises
    UsageError or WorkError for a damaged list of files or a file that cannot be read.
    """
    from autotune.publish.published_files import published

    if not published():
        return Surroundings()
    # The import of the formats takes a while, and most users have published nothing.
    from autotune.publish.neutral import neutral

    neutral_state = neutral(library, os.environ)
    for name in neutral_state.unset:
        del os.environ[name]
    if neutral_state:
        file_names = ", ".join(str(path) for path in neutral_state.files)
        words = f"files published by autotune are not in force while measuring: {file_names}"
        say(
            Note(
                "published.not_in_force",
                words,
                {"files": [str(path) for path in neutral_state.files]},
            )
        )
    return neutral_state.surroundings
