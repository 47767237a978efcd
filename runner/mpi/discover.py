"""Finding MPI installations: next to the running Python (the wheel), then on PATH."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from runner.errors import RunnerError, RunnerUsageError
from runner.mpi.base import Adapter
from runner.mpi.library import Library
from runner.mpi.mpich import Mpich
from runner.mpi.ompi_info import read_parameters
from runner.mpi.openmpi import OpenMPI

_MPICH = re.compile(r"HYDRA build details:.*?Version:\s+(\S+)", re.DOTALL)
LAUNCHERS = ("mpirun", "mpiexec")
_ALTERNATIVES = ("mpirun.openmpi", "mpirun.mpich")
"""What a distribution calls them where it has both in one place."""


def candidates(path: str | None = None) -> list[Path]:
    """Launchers in the order in which they are preferred, each resolved file once."""
    places = [Path(sys.executable).parent]
    places += [Path(p) for p in (path or os.environ.get("PATH", "")).split(os.pathsep) if p]
    found: dict[Path, Path] = {}
    for place in places:
        for name in LAUNCHERS:
            command = place / name
            if command.is_file() and os.access(command, os.X_OK):
                found.setdefault(place.resolve(), command)
        others = [place / name for name in _ALTERNATIVES if os.access(place / name, os.X_OK)]
        same = [found[place.resolve()].resolve()] if place.resolve() in found else []
        for command in others:
            if command.resolve() not in same:
                found.setdefault(command.resolve(), command)
    return list(found.values())


def identify(launcher: Path) -> Library | None:
    """The library of ``launcher`` without its parameters, or None where it is no MPI we know."""
    try:
        done = subprocess.run(
            [str(launcher), "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
            check=False,
            env={
                **os.environ,
                "OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            },
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = done.stdout + done.stderr
    hydra = _MPICH.search(text)
    if hydra:
        return Library("mpich", hydra[1], str(launcher.parent), str(launcher))
    open_mpi = re.search(r"\(Open MPI\) v?(\d[\w.]*)|\(OpenRTE\) v?(\d[\w.]*)", text)
    if open_mpi:
        return Library("openmpi", open_mpi[1] or open_mpi[2], str(launcher.parent), str(launcher))
    return None


def libraries() -> list[Library]:
    """Every MPI found, in order of preference, without parameters."""
    return [library for c in candidates() if (library := identify(c)) is not None]


def launcher_of(family: str, version: str) -> str | None:
    """What ``--mpi`` has to say for exactly this MPI: its directory, or its launcher where another
    one is the usual one there; None where it is not found."""
    for library in libraries():
        if (library.family, library.version) == (family, version):
            usual = Path(library.launcher).name in LAUNCHERS
            return library.bin if usual else library.launcher
    return None


@lru_cache(maxsize=8)
def find(wanted: str | None = None) -> Library:
    """The MPI to use, with its parameters.

    ``wanted`` is None (the first found), a directory, a launcher, or ``family[version prefix]``
    such as ``openmpi``, ``openmpi5``, ``openmpi-4.1``, ``mpich``.  Raises RunnerError without one.
    """
    if wanted and (os.sep in wanted or Path(wanted).exists()):
        return _complete(_at(Path(wanted)))
    found = libraries()
    for library in found:
        if not wanted or _matches(library, wanted):
            return _complete(library)
    if not found:
        raise RunnerError(
            "no MPI found: neither mpirun nor mpiexec lies next to this Python or on PATH.\n"
            "Install one without root: pip install openmpi"
        )
    raise RunnerUsageError(
        f"no MPI matches --mpi {wanted!r}; found: {_listed(found)}.\n"
        "Give a family (openmpi, mpich), a family with a version (openmpi-5.0), or a directory."
    )


def _at(place: Path) -> Library:
    options = (
        [place]
        if place.is_file()
        else [
            d / name for d in (place, place / "bin") for name in LAUNCHERS if (d / name).is_file()
        ]
    )
    for launcher in options:
        library = identify(launcher)
        if library:
            return library
    wrong = (
        "it holds no launcher (mpirun, mpiexec) of Open MPI or MPICH"
        if place.exists()
        else "there is no such file or directory"
    )
    raise RunnerUsageError(
        f"--mpi {place}: {wrong}; found elsewhere: {_listed(libraries())}.\nGive a family "
        "(openmpi, mpich), a family with a version (openmpi-5.0), or an MPI's directory or mpirun."
    )


def _listed(found: list[Library]) -> str:
    return ", ".join(f"{lib.family} {lib.version} in {lib.bin}" for lib in found) or "none"


def _matches(library: Library, wanted: str) -> bool:
    match = re.match(r"^([a-z]+)[-= ]?([\d.]*)$", wanted.lower())
    if not match or match[1] != library.family:
        return False
    prefix = tuple(int(p) for p in match[2].split(".") if p)
    return library.version_tuple[: len(prefix)] == prefix


def _complete(library: Library) -> Library:
    if library.family != "openmpi":
        return library
    info = Path(library.bin) / "ompi_info"
    if not info.exists():
        located = shutil.which("ompi_info")
        if located is None:
            raise RunnerError(
                f"{library.launcher} is Open MPI {library.version}, but its ompi_info was not "
                f"found in {library.bin}: without it no parameter can be checked.  Install "
                "the full package."
            )
        info = Path(located)
    params = read_parameters(info)
    return Library(library.family, library.version, library.bin, library.launcher, params)


def adapter(library: Library) -> Adapter:
    """The adapter of a library's family."""
    return OpenMPI(library) if library.family == "openmpi" else Mpich(library)
