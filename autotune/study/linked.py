"""Whether the MPI that starts a program is the one that the program was linked with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from runner.mpi.discover import launcher_of
from runner.mpi.library import Library
from runner.mpi.linked import linked_with


def linked_words(program: Sequence[str], library: Library) -> str | None:
    """What to say where the program was linked with another MPI than ``library``; None otherwise.

    The launcher may put its own library before it, so the run says whether that works.
    """
    linked = linked_with(program)
    if linked is None or (linked.family, linked.version) == (library.family, library.version):
        return None
    said = (
        f"{Path(program[0]).name} is linked with {linked.family} {linked.version} "
        f"({linked.place}) but started by {library.family} {library.version} "
        f"({library.bin})"
    )
    own = launcher_of(linked.family, linked.version)
    return said if own is None else f"{said}; --mpi {own} selects the library it is linked with"
