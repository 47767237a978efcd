"""Finds MPI installations and their families.

Installations: those on PATH, then the one in the virtual environment of the running Python. That
one is last even if its environment is active, because then it stands first in PATH without being
the MPI of the machine.

Families: each has a name and an adapter class. An installed package adds a family by an entry point
``FAMILY = "module:Class"`` of the group ``autotune.mpi``. The class must pass
:class:`autotune.testing.MpiLibraryContract`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from runner.errors import RunnerError, RunnerUsageError
from runner.extensions import with_extensions
from runner.files.paths import exists, is_file, real_path
from runner.mpi.base import Adapter
from runner.mpi.intel import IntelMpi
from runner.mpi.library import Library
from runner.mpi.mpich import Mpich
from runner.mpi.openmpi.adapter import OpenMPI
from runner.mpi.srun import is_srun, started_by_srun

LAUNCHERS = ("mpirun", "mpiexec")


def candidate_launchers(path: str | None = None) -> list[Path]:
    """Launchers in order of preference; each resolved file appears once."""
    # What a distribution calls them where it has several families in one place.
    alternatives = [f"mpirun.{name}" for name in families()]
    launchers: dict[Path, Path] = {}
    for place in (*_folders_of_path(path), Path(sys.executable).parent):
        for name in LAUNCHERS:
            command = place / name
            if is_file(command) and os.access(command, os.X_OK):
                launchers.setdefault(real_path(place), command)
        others = [place / name for name in alternatives if os.access(place / name, os.X_OK)]
        same = [real_path(launchers[real_path(place)])] if real_path(place) in launchers else []
        for command in others:
            if real_path(command) not in same:
                launchers.setdefault(real_path(command), command)
    return list(launchers.values())


def _folders_of_path(path: str | None = None) -> list[Path]:
    """The folders of PATH without that of the virtual environment in which this Python runs."""
    folders = [Path(p) for p in (path or os.environ.get("PATH", "")).split(os.pathsep) if p]
    if sys.prefix == sys.base_prefix:
        return folders
    own = real_path(Path(sys.executable).parent)
    return [folder for folder in folders if real_path(folder) != own]


def is_own(library: Library) -> bool:
    """Whether a library is beside the running Python and does not stand on PATH otherwise."""
    place = real_path(library.bin)
    return place == real_path(Path(sys.executable).parent) and place not in map(
        real_path, _folders_of_path()
    )


def identify_environment(launcher: Path) -> dict[str, str]:
    """The environment in which a launcher of any family prints its own version.

    Its directory is first on PATH: Intel MPI's ``mpirun`` is a script that calls ``mpiexec.hydra``,
    and MPICH has a command of that name, too.
    """
    environment = dict(os.environ)
    for kind in families().values():
        environment |= kind.identify_environment
    path = environment.get("PATH", os.defpath)
    return environment | {"PATH": os.pathsep.join([str(launcher.parent.absolute()), path])}


def identify(launcher: Path) -> Library | None:
    """The library of ``launcher``, without its parameters; None if no family recognises it."""
    kinds = families()
    try:
        process = subprocess.run(
            [str(launcher), "--version"],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=20,
            check=False,
            env=identify_environment(launcher),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = process.stdout + process.stderr
    for name, kind in kinds.items():
        version = kind.version_in(text)
        if version is not None:
            return Library(name, version, str(launcher.parent), str(launcher))
    return None


def libraries() -> list[Library]:
    """Every MPI installation found, in order of preference, without parameters."""
    return [library for c in candidate_launchers() if (library := identify(c)) is not None]


def launcher_of(family: str, version: str) -> str | None:
    """The value of ``--mpi`` that selects exactly this installation; None if it is not found.

    It is the directory, or the launcher itself if its name is not a usual one (:data:`LAUNCHERS`).
    """
    for library in libraries():
        if (library.family, library.version) == (family, version):
            usual = Path(library.launcher).name in LAUNCHERS
            return library.bin if usual else library.launcher
    return None


def find_library(request: str | None = None) -> Library:
    """The MPI installation to use, with its parameters.

    ``request`` is None (the first found), a directory, a launcher, or ``family[version prefix]``
    such as ``openmpi``, ``openmpi5``, ``openmpi-4.1``, ``mpich``. Raises RunnerError if there is
    none.
    """
    variables = [("PATH", os.environ.get("PATH", ""))]
    variables += [(name, value) for name, value in os.environ.items() if _CHANGES_LIST.match(name)]
    state = frozenset(variables)
    bare = _find_library(request, state)
    known = _COMPLETIONS.get((bare.launcher, state))
    if known is None or adapter(known.library).state_of_lists() != known.state:
        if len(_COMPLETIONS) >= _MOST:
            _COMPLETIONS.clear()
        library = family(bare.family).complete(bare)
        known = _Completion(library, adapter(library).state_of_lists())
        _COMPLETIONS[bare.launcher, state] = known
    return known.library


_CHANGES_LIST = re.compile("(OMPI|PRTE|PMIX|OPAL)_(MCA_|SYSCONFDIR|PREFIX)")
"""Variables that decide which components Open MPI opens, and so which parameters it lists."""


_MOST = 16


@dataclass(frozen=True)
class _Completion:
    """A library with its parameters, and the state of the files on which their list depends."""

    library: Library
    state: Hashable


_COMPLETIONS: dict[tuple[str, frozenset[tuple[str, str]]], _Completion] = {}
"""By launcher and variables."""


@lru_cache(maxsize=_MOST)
def _find_library(request: str | None, _state: frozenset[tuple[str, str]]) -> Library:
    """As :func:`find_library`, without parameters; the answer depends on PATH."""
    if request and (os.sep in request or exists(request)):
        return _at(Path(request))
    installations = libraries()
    for library in installations:
        if not request or _matches(library, request):
            return library
    if not installations:
        raise RunnerError(
            "no MPI library found: neither mpirun nor mpiexec is on PATH or in the directory of "
            "this Python.\nTo install one without root: pip install openmpi",
            code="mpi.none",
        )
    raise RunnerUsageError(
        f"no MPI library matches --mpi {request!r}; found: {_list_text(installations)}.\nGive a "
        f"family ({', '.join(families())}), a family with a version (openmpi-5.0), or "
        "a directory.",
        code="mpi.unknown",
    )


def _at(place: Path) -> Library:
    options = (
        [place]
        if is_file(place)
        else [d / name for d in (place, place / "bin") for name in LAUNCHERS if is_file(d / name)]
    )
    for launcher in options:
        library = identify(launcher)
        if library:
            return library
    wrong = (
        f"it has no launcher ({', '.join(LAUNCHERS)}) of {_titles()}"
        if exists(place)
        else "it does not exist"
    )
    raise RunnerUsageError(
        f"--mpi {place}: {wrong}; found elsewhere: {_list_text(libraries())}.\nGive a family "
        f"({', '.join(families())}), a family with a version (openmpi-5.0), or an MPI's directory "
        "or mpirun.",
        code="mpi.unknown",
    )


def _titles() -> str:
    return " or ".join(kind.title for kind in families().values())


def _list_text(installations: list[Library]) -> str:
    return ", ".join(f"{lib.family} {lib.version} in {lib.bin}" for lib in installations) or "none"


def _matches(library: Library, request: str) -> bool:
    match = re.match(r"^([a-z]+)[-= ]?([\d.]*)$", request.lower())
    if not match or match[1] != library.family:
        return False
    prefix = tuple(int(p) for p in match[2].split(".") if p)
    return library.version_tuple[: len(prefix)] == prefix


__all__ = ["LAUNCHERS", "adapter", "candidate_launchers", "find_library", "identify", "libraries"]


GROUP = "autotune.mpi"
_OWN: dict[str, type[Adapter]] = {kind.family: kind for kind in (OpenMPI, Mpich, IntelMpi)}


@cache
def families() -> dict[str, type[Adapter]]:
    """Adapter classes by family name, of this package and of installed packages.

    Raises RunnerError if an entry point is broken or its name differs from its class's family.
    """
    kinds: dict[str, type[Adapter]] = with_extensions(GROUP, Adapter, _OWN)  # type: ignore[type-abstract]
    for name, kind in kinds.items():
        if kind.family != name:
            raise RunnerError(
                f"the entry point {name} of the group {GROUP} has a class of the family "
                f"{kind.family!r}; expected the same name",
                code="mpi.unknown",
            )
    return kinds


def family(name: str) -> type[Adapter]:
    """The adapter class of a family; an unknown one raises RunnerUsageError with the known ones."""
    kinds = families()
    if name not in kinds:
        raise RunnerUsageError(
            f"the MPI family {name!r} is not known; expected one of {', '.join(kinds)}.\nA "
            f"package can add another family with an adapter in the entry points {GROUP}",
            code="mpi.unknown",
        )
    return kinds[name]


def adapter(library: Library) -> Adapter:
    """The adapter of a library and its launcher; RunnerUsageError if the family is unknown."""
    kind = family(library.family)
    return (started_by_srun(kind) if is_srun(library.launcher) else kind)(library)
