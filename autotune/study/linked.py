"""Whether the MPI that starts a program is the one that the program was linked with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from runner.mpi.discover import libraries
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
        f"{Path(program[0]).name} was linked with {linked.family} {linked.version} "
        f"({linked.place}) and is started by {library.family} {library.version} ({library.bin})"
    )
    for other in libraries():
        if (other.family, other.version) == (linked.family, linked.version):
            return f"{said}; --mpi {_words_for(other)} takes its own"
    return said


def _words_for(library: Library) -> str:
    """The directory; where another MPI is the usual one there, the launcher."""
    usual = Path(library.launcher).name in ("mpirun", "mpiexec")
    return library.bin if usual else library.launcher
