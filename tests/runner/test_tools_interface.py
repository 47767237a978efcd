"""A program that uses the tools interface (MPI_T) runs with the library that reports values."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.types import LaunchSpec
from tests.mpis import built, library_named

READS_VARIABLES = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, provided, number = 0;
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_cvar_get_num(&number);
    MPI_T_finalize();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("%s\n", number > 0 ? "has variables" : "none");
    return MPI_Finalize();
}
"""


@pytest.mark.mpi
def test_a_program_may_use_it_after_us(tmp_path: Path) -> None:
    """MPICH 4.0 has no variables after the last MPI_T_finalize, and crashes."""
    library = library_named("mpich-4.0.3")
    program = built(library, tmp_path, READS_VARIABLES)
    with Runner(adapter(library), guard=False) as runner:
        record = runner.run(LaunchSpec(program=(str(program),), ranks=1, timeout_s=60))
    assert record.valid, record.reason
    assert "has variables" in record.stdout_tail
