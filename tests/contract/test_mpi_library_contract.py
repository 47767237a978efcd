"""The MPI libraries that autotune knows itself keep what others must keep, too."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

from autotune.testing import MpiLibraryContract
from autotune.testing.mpi_library import PROGRAM, ParameterFile
from runner.launch import Runner
from runner.mpi.base import Adapter, Probe
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.mpi.openmpi.adapter import OpenMPI
from runner.types import LaunchSpec, ReadBack
from tests.mpis import built, library_named, on_path

pytestmark = pytest.mark.mpi

RANK = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
    int rank, size;
    char input[64] = "", said[256], all[256 * 8];
    const char *value = getenv("AUTOTUNE_CONTRACT");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 2 && !strcmp(argv[2], "input"))
        input[fread(input, 1, sizeof input - 1, stdin)] = 0;
    snprintf(said, sizeof said, "rank %d of %d %s '%s'", rank, size, value ? value : "-", input);
    MPI_Gather(said, 256, MPI_CHAR, all, 256, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < size; i++)
        puts(all + 256 * i);
    MPI_Finalize();
    return atoi(argv[1]);
}
"""
"""PROGRAM of the contract in C, which starts faster; its first word is the exit code.

Ranks in Python are those of the time limit, and those that are one world.
"""


class OfTests(MpiLibraryContract):
    """A library as the tests name it."""

    name: ClassVar[str]
    distribution: ClassVar[bool] = False
    """On PATH only: a distribution's, for which no package stands in."""
    rank: ClassVar[str] = ""
    """Where :data:`RANK` is, compiled for the library."""

    @classmethod
    def find(cls) -> Library:
        return on_path(cls.name) if cls.distribution else library_named(cls.name)

    @pytest.fixture(scope="class")
    @classmethod
    def library(cls) -> Library:
        return cls.find()

    @pytest.fixture(scope="class")
    @classmethod
    def launcher(cls, library: Library) -> Adapter:
        return adapter(library)

    @pytest.fixture(scope="class")
    @classmethod
    def runner(cls, launcher: Adapter) -> Iterator[Runner]:
        with Runner(launcher, guard=False) as started:
            yield started

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def in_c(cls, tmp_path_factory: pytest.TempPathFactory) -> None:
        with suppress(pytest.skip.Exception):  # No compiler: then all ranks are in Python.
            cls.rank = str(built(cls.find(), tmp_path_factory.mktemp("rank"), RANK))

    def spec(self, launcher: Adapter, ranks: int = 2, *words: str, **more: Any) -> LaunchSpec:
        program = more.get("program", PROGRAM)
        spec = super().spec(launcher, ranks, *words, **more)
        if not self.rank or ranks != 2 or not program.startswith(PROGRAM):
            return spec
        code = "3" if "exit(3)" in program else "0"
        return dataclasses.replace(spec, program=(self.rank, code, *words))


class OfOpenMpi(OfTests):
    """Both generations load a file of parameters by ``--tune``."""

    parameter = ("coll_base_verbose", "0")
    launch_options = ("--mca", "btl", "^ofi")

    def parameter_file(self, place: Path) -> ParameterFile:
        name, value = self.parameter
        file = place / "file.tune"
        file.write_text(f"--mca {name} {value}\n")
        return ParameterFile(options=("--tune", str(file)))


class TestOpenMpi5(OfOpenMpi):
    name = "openmpi-5"
    parameter = ("btl_sm_eager_limit", "8192")


class TestOpenMpi418(OfOpenMpi):
    name = "openmpi-4.1.8"
    parameter = ("btl_vader_eager_limit", "8192")


class TestOpenMpi41(TestOpenMpi418):
    """As a rule 4.1.4."""

    name = "openmpi-4.1"
    distribution = True


class TestMpich(OfTests):
    name = "mpich"
    parameter = ("MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE", "4096")

    def parameter_file(self, place: Path) -> ParameterFile:
        """The selection of collective algorithms; nothing shows it, but a mistake in it aborts."""
        file = place / "tree.json"
        file.write_text("no JSON\n")
        variable = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
        return ParameterFile({variable: str(file)}, dies=True)


class TestMpich4(TestMpich):
    """As a rule 4.0.2."""

    name = "mpich-4"
    distribution = True


class TestIntel(OfTests):
    name = "impi"
    parameter = ("I_MPI_ADJUST_BCAST", "3")


# The suite itself: an adapter that breaks a promise fails the check that is about it.


class Forgetful(OpenMPI):
    """Sets nothing for the ranks."""

    def rank_environment(self, variables: Mapping[str, str]) -> list[str]:
        return []


class Hopeful(OpenMPI):
    """Believes that everything it was asked for is in force."""

    def probe(self, spec: LaunchSpec, scratch: Path) -> Probe:
        asked = {**spec.of("mca"), **spec.expected}
        return Probe(True, spec.ranks, {n: ReadBack("in force", v, v) for n, v in asked.items()})


class Mute(OpenMPI):
    """Reads nothing back, though it says that it does."""

    def probe(self, spec: LaunchSpec, scratch: Path) -> Probe:
        return Probe(True, spec.ranks)


class Dropping(OpenMPI):
    """Leaves out parameters and placement, and does not know what a refusal looks like."""

    refusals = ()

    def command(self, spec: LaunchSpec, scratch: Path) -> list[str]:
        return super().command(dataclasses.replace(spec, parameters={}, placement={}), scratch)


class Lying(Hopeful, Dropping):
    """Leaves them out and says that they are in force."""


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (Forgetful, "test_variables_reach_the_ranks"),
        (Hopeful, "test_an_unknown_parameter_is_never_in_force"),
        (Lying, "test_a_wrong_value_fails_where_the_library_checks_values"),
        (Mute, "test_a_parameter_is_in_force_or_said_not_to_be_observable"),
        (Mute, "test_a_program_without_mpi_is_told_where_it_can_be"),
        (Dropping, "test_a_parameter_is_in_force_or_said_not_to_be_observable"),
        (Dropping, "test_placement_is_said_and_seen"),
        (Dropping, "test_a_launcher_that_refuses_is_told_from_a_program_that_fails"),
    ],
)
def test_a_broken_promise_fails(broken: type[OpenMPI], check: str) -> None:
    launcher = broken(library_named("openmpi-5"))
    with (
        Runner(launcher, guard=False) as runner,
        pytest.raises((AssertionError, KeyError)),
    ):
        getattr(TestOpenMpi5(), check)(launcher, runner)
