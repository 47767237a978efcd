"""Whether the profiling library sees operations that do not commute, however they are created."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.trace.counts import parse_counts
from runner.trace.run import run_with_counts
from runner.types import LaunchSpec
from tests.mpis import c_compiler, library_named, on_path
from tests.trace.test_counts import text

pytestmark = pytest.mark.mpi
C = """
#include <mpi.h>
static void f(void *a, void *b, int *n, MPI_Datatype *t) { (void)a; (void)b; (void)n; (void)t; }
int main(int count, char **words)
{
    MPI_Op op;
    int rank;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1)
        CREATE;
    MPI_Barrier(MPI_COMM_WORLD);
    (void)op; (void)f;
    MPI_Finalize();
    return 0;
}
"""
FORTRAN = """
#include <mpi.h>
void mpi_op_create_(void *, int *, int *, int *);
static void f(void *a, void *b, int *n, int *t) { (void)a; (void)b; (void)n; (void)t; }
int main(int count, char **words)
{
    int no = 0, op, error;
    MPI_Init(&count, &words);
    mpi_op_create_((void *)f, &no, &op, &error);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
"""
PYTHON = """
from mpi4py import MPI
op = MPI.Op.Create(lambda a, b, t: None, commute=False)
MPI.COMM_WORLD.Barrier()
"""


def commutes(runner: Runner, *program: str) -> bool | None:
    options = ("--mca", "btl", "^ofi") if runner.adapter.library.family == "openmpi" else ()
    spec = LaunchSpec(program, 2, launch_options=options, oversubscribe=True, timeout_s=60)
    counted = run_with_counts(runner, spec)
    assert counted.record.valid, counted.record.reason
    return counted.commutes


@pytest.mark.parametrize(
    ("create", "found"),
    [
        ("MPI_Op_create(f, 0, &op)", False),
        ("MPI_Op_create(f, 1, &op)", True),
        ("PMPI_Op_create(f, 0, &op)", False),
        ("op = MPI_SUM", True),
    ],
)
def test_a_program_in_c(
    runner: Runner, compiled: Callable[[str, str], str], create: str, found: bool
) -> None:
    """One rank that creates such an operation is enough."""
    assert commutes(runner, compiled("create", C.replace("CREATE", create))) is found


@pytest.mark.parametrize("name", ["openmpi-5", pytest.param("mpich", marks=pytest.mark.slow)])
def test_a_program_in_python(name: str, tmp_path: Path) -> None:
    program = tmp_path / "operation.py"
    program.write_text(PYTHON)
    with Runner(adapter(library_named(name)), guard=False) as runner:
        assert commutes(runner, sys.executable, str(program)) is False


def test_the_name_of_fortran(tmp_path: Path) -> None:
    library = on_path("openmpi-4.1")
    (tmp_path / "f.c").write_text(FORTRAN)
    words = [c_compiler(library), "f.c", "-o", "f", "-lmpi_mpifh"]
    if subprocess.run(words, cwd=tmp_path, capture_output=True, check=False).returncode:
        pytest.skip("this Open MPI has no bindings for Fortran")
    with Runner(adapter(library), guard=False) as runner:
        assert commutes(runner, str(tmp_path / "f")) is False


@pytest.mark.parametrize(("line", "found"), [("1", True), ("0", False), (None, None)])
def test_the_line_of_a_rank(tmp_path: Path, line: str | None, found: bool | None) -> None:
    path = tmp_path / "rank-0"
    added = "" if line is None else f"commutes {line}\n"
    path.write_text(text().replace("outside 1\n", f"outside 1\n{added}"))
    assert parse_counts(path).commutes is found
