"""The MPI libraries of a test that is about several: each with its compiler, or a skip."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from runner.errors import RunnerError
from runner.mpi.discover import find_library
from runner.mpi.library import Library

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
    """The library that ``--mpi NAME`` means here, or a skip."""
    wanted = os.environ.get("AUTOTUNE_MPICH", name) if name == "mpich" else name
    try:
        return find_library(wanted)
    except RunnerError as missing:
        if name == "mpich":
            pytest.skip(f"no MPICH (AUTOTUNE_MPICH, PATH): {str(missing).splitlines()[0]}")
        pytest.skip(f"no {name} on PATH: {str(missing).splitlines()[0]}")


def built(library: Library, place: Path, source: str = PING_PONG, *options: str) -> Path:
    """``source`` (C) compiled for this library; a skip where it comes without a compiler."""
    own = Path(library.bin)
    # A distribution that has both calls the second one's compiler by its family only.
    names = (own / f"mpicc.{library.family}", own / "mpicc")
    compiler = next((path for path in names if path.exists()), None)
    if compiler is None or shutil.which("cc") is None:
        pytest.skip("no C compiler")
    text, program = place / "program.c", place / "program"
    text.write_text(source)
    subprocess.run([compiler, *options, text, "-o", program], check=True, capture_output=True)
    return program
