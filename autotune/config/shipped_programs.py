"""What shipped programs need and the core of autotune does not."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from autotune.errors import UsageError
from autotune.extras import missing_extra

_ROOM = "runner.programs."
_NEEDS = {
    # It starts a benchmark of the user, which brings its own MPI.
    "runner.programs.micro.brought": (),
    "runner.programs.micro": ("mpi4py",),
    "runner.programs.micro.probe": ("mpi4py",),
}
_COMPILED = ("mpi4py", "numba", "llvmlite")
"""What all others need."""


def need_packages(command: Sequence[str]) -> None:
    """Raise UsageError if a command is a shipped program and a package that it needs is missing.

    A command that starts another Python than this one is none of ours to judge.
    """
    python, *words = command
    if python != sys.executable or "-m" not in words[:-1]:
        return
    module = words[words.index("-m") + 1]
    if not module.startswith(_ROOM):
        return
    for package in _NEEDS.get(module, _COMPILED):
        if not _is_installed(package):
            reason = missing_extra(ModuleNotFoundError(name=package))
            raise UsageError(f"{reason}", code="install.extra")


@functools.cache
def _is_installed(package: str) -> bool:
    return find_spec(package) is not None
