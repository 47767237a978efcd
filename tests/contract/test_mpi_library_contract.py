"""The MPI libraries that autotune knows itself keep what others must keep, too."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from autotune.testing import MpiLibraryContract
from autotune.testing.mpi_library import ParameterFile
from runner.launch import Runner
from runner.mpi.base import Probe
from runner.mpi.library import Library
from runner.mpi.openmpi import OpenMPI
from runner.types import LaunchSpec, ReadBack
from tests.mpis import library_named, on_path

pytestmark = pytest.mark.mpi


class OfTests(MpiLibraryContract):
    """A library as the tests name it."""

    name: ClassVar[str]
    distribution: ClassVar[bool] = False
    """On PATH only: a distribution's, for which no package stands in."""

    @classmethod
    def find(cls) -> Library:
        return on_path(cls.name) if cls.distribution else library_named(cls.name)

    @pytest.fixture
    def library(self) -> Library:
        return self.find()


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
        (Lying, "test_a_wrong_value_is_seen_where_values_are_checked"),
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
