"""Traced runs of real programs, and counts made up for the arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.trace.run import Method, TracedRun, trace
from runner.types import LaunchSpec
from tests.apps.conftest import TRANSPORT
from tests.cli.conftest import cli, program
from tests.programs import compiled as program_of

__all__ = ["cli", "program"]

TraceRun = Callable[..., TracedRun]


@pytest.fixture(scope="session")
def runner(library: Library) -> Iterator[Runner]:
    with Runner(adapter(library), guard=False) as started:
        yield started


@pytest.fixture
def traced(runner: Runner) -> TraceRun:
    """``traced(ranks, *program, method="pmpi")`` runs a program once under the library."""
    options = (*TRANSPORT,) if runner.adapter.library.family == "openmpi" else ()

    def run(ranks: int, *program: str, method: Method = "pmpi") -> TracedRun:
        spec = LaunchSpec(
            program=program,
            ranks=ranks,
            oversubscribe=True,
            placement={"bind_to": "none"},
            launch_options=options,
            timeout_s=60,
        )
        return trace(runner, spec, method)

    return run


@pytest.fixture(scope="session")
def mpicc(library: Library, compiler: str) -> str:
    place = Path(library.bin) / "mpicc"
    if not place.exists():
        pytest.skip(f"{library.family} {library.version} has no mpicc")
    return str(place)


@pytest.fixture(scope="session")
def compiled(mpicc: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], str]:
    """``compiled(name, text)``: a C program built with the MPI's compiler."""
    place = tmp_path_factory.mktemp("programs")

    def build(name: str, text: str) -> str:
        return str(program_of([mpicc], text, place / name, "-O1", "-lpthread"))

    return build


QUICK = """
#include <mpi.h>
#include <stdlib.h>
int main(int count, char **words)
{
    MPI_Init(&count, &words);
    MPI_Barrier(MPI_COMM_WORLD);
    if (count > 1 && atoi(words[1]) < 0) abort();
    MPI_Finalize();
    return count > 1 ? atoi(words[1]) : 0;
}
"""


@pytest.fixture
def quick(compiled: Callable[[str, str], str]) -> str:
    """A program with one barrier; it ends with the exit code that is its argument, or aborts."""
    return compiled("quick", QUICK)
