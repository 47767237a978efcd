"""The families of MPI libraries by name, each with its adapter class.

An installed package adds one by an entry point ``FAMILY = "module:Class"`` of the group
``autotune.mpi``; what the class must keep is :class:`autotune.testing.MpiLibraryContract`.
"""

from __future__ import annotations

from functools import cache

from runner.errors import RunnerError, RunnerUsageError
from runner.extensions import extended
from runner.mpi.base import Adapter
from runner.mpi.library import Library
from runner.mpi.mpich import Mpich
from runner.mpi.openmpi import OpenMPI

GROUP = "autotune.mpi"
_OWN: dict[str, type[Adapter]] = {kind.family: kind for kind in (OpenMPI, Mpich)}


@cache
def families() -> dict[str, type[Adapter]]:
    """Family -> adapter class, of this package and of installed ones.

    Raises RunnerError for an entry point that is broken or names another family than its class.
    """
    found: dict[str, type[Adapter]] = extended(GROUP, Adapter, _OWN)  # type: ignore[type-abstract]
    for name, kind in found.items():
        if kind.family != name:
            raise RunnerError(
                f"the entry point {name} of the group {GROUP} has a class of the family "
                f"{kind.family!r}; expected the same name"
            )
    return found


def family(name: str) -> type[Adapter]:
    """The adapter class of a family; RunnerUsageError, with those known, for another name."""
    known = families()
    if name not in known:
        raise RunnerUsageError(
            f"the MPI family {name!r} is not known; expected one of {', '.join(known)}.\nA "
            f"package can add another family with an adapter in the entry points {GROUP}"
        )
    return known[name]


def adapter(library: Library) -> Adapter:
    """The adapter of a library; RunnerUsageError where its family is not known."""
    return family(library.family)(library)
