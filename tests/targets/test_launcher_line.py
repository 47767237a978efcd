from __future__ import annotations

import pytest

from autotune.config.launcher import options_for
from autotune.errors import UsageError
from autotune.targets.launch_options import fixed_parameters, with_placement, without_parameters
from autotune.targets.launcher_line import parse_launcher_line
from runner.mpi.library import Library
from tests.case_table import case_table


def test_a_program_without_launcher_is_itself() -> None:
    line = parse_launcher_line(("./cg.A.x", "-v"))
    assert line.program == ("./cg.A.x", "-v")
    assert line.ranks is None
    assert line.launcher is None


@case_table("flag", ["-n", "-np", "--np"])
def test_ranks_are_taken_from_the_launcher(flag: str) -> None:
    line = parse_launcher_line(("mpirun", flag, "4", "./cg.A.x", "-np", "7"))
    assert (line.ranks, line.program) == (4, ("./cg.A.x", "-np", "7"))


def test_understood_options_become_fixed_launch_options() -> None:
    line = parse_launcher_line(
        (
            "/opt/mpi/bin/mpiexec",
            "--mca",
            "btl",
            "self,sm",
            "-x",
            "OMP_NUM_THREADS=1",
            "--bind-to",
            "none",
            "--map-by",
            "core:oversubscribe",
            "./a",
        )
    )
    assert line.options == ("--mca", "btl", "self,sm", "-x", "OMP_NUM_THREADS=1")
    assert line.placement == {"bind_to": "none", "map_by": "core"}


def test_parameters_among_options_are_found_and_left_out() -> None:
    options = ("--mca", "btl", "^ofi", "--host", "a", "-mca", "pml", "ob1")
    assert fixed_parameters(options) == {"btl": "^ofi", "pml": "ob1"}
    assert without_parameters(options, {"btl"}) == ("--host", "a", "-mca", "pml", "ob1")
    assert without_parameters(options, ()) == options


def test_no_part_of_the_placement_stands_twice() -> None:
    tables = options_for("mpirun", Library("openmpi", "5.0.11", "/usr", "/usr/bin/mpirun"))
    fixed = ("--mca", "btl", "^ofi", "-map-by", "ppr:1:node:OVERSUBSCRIBE", "--bind-to", "none")
    assert with_placement(fixed, {}, tables) == (fixed, {})
    binding = {"bind_to": "core"}
    assert with_placement(fixed, binding, tables) == (fixed[:5], binding)
    mapping = {"map_by": "core", "rank_by": "slot"}
    left, own = with_placement(fixed, mapping, tables)
    assert left == ("--mca", "btl", "^ofi", "--bind-to", "none")
    assert own == mapping | {"map_by": "core:oversubscribe"}
    tables = options_for("srun", None)
    assert with_placement(("--cpu-bind=cores", "-K"), binding, tables) == (("-K",), binding)


def test_variables_of_a_hydra_are_parameters_too() -> None:
    line = parse_launcher_line(("mpirun", "-n", "2", "-genv", "I_MPI_FABRICS", "shm", "./a"))
    assert line.options == ("-genv", "I_MPI_FABRICS", "shm")
    assert fixed_parameters(line.options) == {"I_MPI_FABRICS": "shm"}
    assert without_parameters(line.options, {"I_MPI_FABRICS"}) == ()


def test_what_autotune_says_itself_is_dropped() -> None:
    line = parse_launcher_line(
        ("mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "2", "./a")
    )
    assert line.options == ()


def test_an_unknown_option_is_refused_with_the_corrected_line() -> None:
    with pytest.raises(UsageError) as caught:
        parse_launcher_line(("mpirun", "-np", "4", "--frobnicate", "./cg.A.x"), "compare")
    text = str(caught.value)
    assert "--frobnicate" in text
    assert "autotune compare -- mpirun -np 4 ./cg.A.x" in text  # data


@case_table(
    "words",
    [
        ("mpirun", "-np", "4"),
        ("mpirun", "-np"),
        ("mpirun", "-np", "four", "./a"),
        ("mpirun", "-np", "0", "./a"),
        ("mpirun", "-n", "2", "mpirun", "-n", "2", "./a"),
        ("mpirun", "-n", "2", "./a", ":", "-n", "1", "./b"),
        (),
    ],
)
def test_broken_lines_are_usage_errors(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        parse_launcher_line(words)
