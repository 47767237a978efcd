"""Launch lines: their parts, and lines with a part changed."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest

from autotune.check.comparison import comparison_command
from autotune.check.corrections import without_pinning
from autotune.check.launch_line import LaunchLine, parse_line
from autotune.errors import UsageError
from runner.mpi.library import Library
from tests.case_table import case_table
from tests.lines import refused

OPENMPI = Library("openmpi", "5.0.11", "/opt/bin", "/opt/bin/mpirun")
MPICH = Library("mpich", "4.2.0", "/opt/bin", "/opt/bin/mpirun")


def line_of(text: str, library: Library = OPENMPI) -> LaunchLine:
    return parse_line(shlex.split(text), library)


@case_table(
    "text",
    [
        "A=1 env B=2 time mpirun -np 4 --mca btl self,sm -x C=3 ./a.out -n 5",
        "srun -n4 --cpus-per-task=2 --export=ALL,A=1 ./a.out",
        "mpirun --no-such-option -n 2 ./a.out",
        "mpirun -n 1 ./a : -n 2 ./b",
    ],
)
def test_a_line_stays_as_it_is(text: str) -> None:
    assert list(line_of(text).words) == shlex.split(text)


def test_the_parts_of_a_line() -> None:
    line = line_of("A=1 env B=2 mpirun -np 4 --mca btl self,sm -x C=3 ./a.out -n 5")
    assert line.assignments == {"A": "1", "B": "2"}
    assert line.variables == {"C": "3"}
    assert line.ranks == 4
    assert line.program == ("./a.out", "-n", "5")
    assert [option.values for option in line.parameters] == [("btl", "self,sm")]


def _with_a(line: LaunchLine) -> LaunchLine:
    return line.with_variable("A", "1")


def _with_four(line: LaunchLine) -> LaunchLine:
    return line.with_ranks(4)


CHANGES: list[tuple[str, Library, Callable[[LaunchLine], LaunchLine], str]] = [
    (
        "mpirun -n 2 ./a",
        OPENMPI,
        _with_a,
        "mpirun -n 2 -x A=1 ./a",
    ),
    ("A=2 mpirun ./a", OPENMPI, _with_a, "A=1 mpirun ./a"),
    ("mpirun -x A=2 ./a", OPENMPI, _with_a, "mpirun -x A=1 ./a"),
    ("mpiexec ./a", MPICH, _with_a, "mpiexec -genv A 1 ./a"),
    ("srun ./a", MPICH, _with_a, "srun --export=ALL,A=1 ./a"),
    (
        "srun --export=ALL,A=2,B=3 ./a",
        MPICH,
        _with_a,
        "srun --export=ALL,B=3,A=1 ./a",
    ),
    ("mpirun -np 8 ./a", OPENMPI, _with_four, "mpirun -np 4 ./a"),
    ("srun -n8 ./a", OPENMPI, _with_four, "srun -n 4 ./a"),
    ("mpirun ./a", OPENMPI, _with_four, "mpirun -n 4 ./a"),
    (
        "A=1 taskset -c 0 time mpirun -n 2 numactl -C 0 ./a x",
        OPENMPI,
        without_pinning,
        "A=1 time mpirun -n 2 ./a x",
    ),
    ("mpirun -n 2 ./taskset", OPENMPI, without_pinning, "mpirun -n 2 ./taskset"),
]


@case_table(("text", "library", "change", "right"), CHANGES)
def test_a_line_with_a_part_changed(
    text: str, library: Library, change: Callable[[LaunchLine], LaunchLine], right: str
) -> None:
    assert shlex.join(change(line_of(text, library)).words) == shlex.join(shlex.split(right))


@case_table(
    ("words", "code"),
    [
        (["./a.out"], "check.no_launcher"),
        ([], "check.no_launcher"),
        (["mpirun", "-n", "2"], "program.missing"),
    ],
)
def test_what_is_no_launch_line(words: list[str], code: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_line(words)
    assert refusal.value.code == code


COMPARISONS = [
    (
        "mpirun -n 2 ./a",
        "mpirun -n 2 --map-by slot:PE=4 ./a",
        "autotune compare default map_by=slot:PE=4 -- mpirun -n 2 ./a",
    ),
    (
        "OMP_NUM_THREADS=4 mpirun -n 2 --bind-to none ./a",
        "OMP_NUM_THREADS=1 mpirun -n 2 --bind-to none ./a",
        "autotune compare OMP_NUM_THREADS=4 OMP_NUM_THREADS=1 -- mpirun -n 2 --bind-to none ./a",
    ),
    (
        "A=1 time mpirun -n 2 --mca btl tcp,self ./a",
        "A=1 time mpirun -n 2 ./a",
        "A=1 autotune compare 'btl=\"tcp,self\"' default -- mpirun -n 2 ./a",
    ),
    ("srun -n 2 ./a", "srun -n 2 --cpus-per-task=4 ./a", ""),
    ("mpirun -n 2 ./a", "mpirun -n 4 ./a", ""),
    ("mpirun -n 2 ./a", "mpirun -n 2 --mca mpi_yield_when_idle 1 ./a", ""),
    ("taskset -c 0 mpirun -n 2 ./a", "taskset -c 0 mpirun -n 2 --bind-to none ./a", ""),
]


@case_table(("text", "corrected", "command"), COMPARISONS)
def test_the_command_that_compares_both_lines(text: str, corrected: str, command: str) -> None:
    words = comparison_command(line_of(text), tuple(shlex.split(corrected)), OPENMPI)
    assert list(words or ()) == shlex.split(command)
    assert not command or refused(command) is None
