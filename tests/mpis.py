"""The MPI libraries of a test that is about several: each with its compiler, or a skip."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

from runner.errors import RunnerError
from runner.mpi.discover import find_library
from runner.mpi.library import Library
from tests.mpi_environments import PACKAGES, NotThereError, environment, found
from tests.programs import compiled

NAMES = ("openmpi-4.1", "openmpi-5", "mpich")
PING_PONG = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    static char data[1 << 16];
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double start = MPI_Wtime();
    for (int i = 0; i < 500 && size > 1 && rank < 2; i++) {
        if (rank == i % 2)
            MPI_Send(data, 4096, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(data, 4096, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == 0)
        printf("time %g s\n", MPI_Wtime() - start);
    return MPI_Finalize();
}
"""
"""Two ranks and messages between them; over in some milliseconds."""


def library_named(name: str) -> Library:
    """The library that a test means by a family or a family and version, or a skip.

    One of the tests' own (:mod:`tests.mpi_environments`) if the name is that of one, or else the
    one that ``--mpi NAME`` means here; where it is missing, the other of these two.
    """
    if name in PACKAGES:
        try:
            return find_library(str(found(name)))
        except NotThereError as missing:
            return _without_own(name, missing)
    own = next((each for each in PACKAGES if each.startswith(f"{name}.")), None)
    try:
        return find_library(name)
    except RunnerError:
        return on_path(name) if own is None else find_library(str(environment(own)))


def put_on_path(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands find this library, behind those that they find already."""
    path = os.environ.get("PATH", os.defpath)
    monkeypatch.setenv("PATH", os.pathsep.join([path, library.bin]))


def _without_own(name: str, missing: NotThereError) -> Library:
    try:
        return find_library(name)
    except RunnerError:
        pytest.skip(str(missing))


def on_path(name: str) -> Library:
    """The library that ``--mpi NAME`` means here, or a skip: a distribution's, as a rule."""
    try:
        return find_library(name)
    except RunnerError as missing:
        pytest.skip(f"no {name} on PATH: {str(missing).splitlines()[0]}")


def c_compiler(library: Library) -> str:
    """The command that compiles C for this library; a skip where it comes without one, or
    without its headers (a distribution has these in a package of their own)."""
    own = Path(library.bin)
    # A distribution that has both calls the second one's compiler by its family only.
    names = (own / f"mpicc.{library.family}", own / "mpicc")
    compiler = next((str(path) for path in names if path.exists()), None)
    if compiler is None or shutil.which("cc") is None:
        pytest.skip("no C compiler")
    if not _has_headers(compiler):
        pytest.skip(f"no mpi.h for {compiler}")
    return compiler


@lru_cache
def _has_headers(compiler: str) -> bool:
    done = subprocess.run(
        [compiler, "-fsyntax-only", "-x", "c", "-"],
        env=_environment(compiler),
        input="#include <mpi.h>\n",
        text=True,
        capture_output=True,
    )
    return done.returncode == 0


def _environment(compiler: str) -> dict[str, str]:
    """The variables of a compiler: Intel's does not find its own headers without its root."""
    return {**os.environ, "I_MPI_ROOT": str(Path(compiler).parent.parent)}


def built(library: Library, place: Path, source: str = PING_PONG, *options: str) -> Path:
    """``source`` (C) compiled for this library; a skip where it comes without a compiler."""
    compiler = c_compiler(library)
    env = _environment(compiler)
    return compiled([compiler], source, place / "program", *options, env=env)
