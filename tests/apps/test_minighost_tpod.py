"""Blocks as tasks give the bits of the serial run, however they are run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from syrupy.assertion import SnapshotAssertion

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.jacobi3d.options import parse as jacobi3d
from runner.programs.apps.minighost.options import parse as minighost
from tests.apps.conftest import Launch, results_of
from tests.refusals import refusal

GHOST = ("--size", "12x10x14", "--variables", "3", "--steps", "5")
JACOBI = ("--size", "16x14x18", "--iterations", "5")
PROGRAMS = {"minighost": GHOST, "jacobi3d": JACOBI}
TASKS = ("--variant", "tpod", "--verify", "full", "--affinity", "none")
FORMS = (
    "--block-edge 5",
    "--block-edge 4 --order SR --barrier process --block-order cart",
    "--block-edge 4x5x6 --order ISR --block-order wtdag --barrier neighbours",
    "--block-edge 5 --order SIR --prepost --workers 2 --task-queue stealing",
    "--block-edge 0x5x5 --prepost --barrier neighbours --polls 20 --block-order comm_last",
    "--block-edge 5 --block-messages face --barrier neighbours --block-order tdag",
    "--block-edge 5 --block-messages face --order SR --workers 2 --thread-level serialized",
    "--block-edge 5 --workers 2 --thread-level funneled --task-queue stealing --prepost",
    "--block-edge 4 --order SR --workers 3 --thread-level funneled --barrier neighbours",
)
SERIALIZED, FUNNELED, _ = (form for form in FORMS if "--thread-level" in form)


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("program", "processes"),
    [
        ("jacobi3d", 2),
        *(
            pytest.param(program, processes, marks=pytest.mark.slow)
            for program in PROGRAMS
            for processes in (1, 2, 4)
            if (program, processes) != ("jacobi3d", 2)
        ),
    ],
)
def test_the_bits_are_those_of_the_serial_run(launch: Launch, program: str, processes: int) -> None:
    lines = [[*PROGRAMS[program], *TASKS, *form.split()] for form in FORMS]
    found = results_of(launch, processes, program, lines)
    assert all(result["verified"] is True for result in found)


def check_alone(launch: Launch, program: str, processes: int, form: str) -> None:
    words = [*PROGRAMS[program], *TASKS, *form.split()]
    done = launch(processes, "-m", f"runner.programs.apps.{program}", *words)
    assert done.code == 0, done.out + done.err
    assert done.result["verified"] is True


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("program", "form"),
    [
        ("jacobi3d", FUNNELED),
        pytest.param("minighost", SERIALIZED, marks=pytest.mark.slow),
    ],
)
def test_the_bits_are_the_same_with_mpi_started_as_the_form_says(
    launch: Launch, program: str, form: str
) -> None:
    """MPI is started with the thread level of the form, which a job of all forms does not show."""
    check_alone(launch, program, 2, form)


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("processes", [1, 2, 4])
def test_the_bits_are_the_same_in_a_job_for_each_form(
    launch: Launch, program: str, processes: int
) -> None:
    for form in FORMS:
        check_alone(launch, program, processes, form)


@pytest.mark.mpi
def test_messages_of_blocks_and_variables(launch: Launch) -> None:
    """Faces of blocks carry the cells of the faces of the process."""
    common = "--block-edge 5 --barrier neighbours --block-messages"
    forms = [f"{common} block", f"{common} face"]
    forms += [f"--messages variable --block-edge 5 {more}" for more in ("--order SR", "--prepost")]
    found = results_of(launch, 2, "minighost", [[*GHOST, *TASKS, *form.split()] for form in forms])
    assert all(result["verified"] is True for result in found)
    block, face, *_ = found
    assert block["bytes"] == face["bytes"]
    # Blocks of 2 x 2 at the face between both processes.
    assert block["messages"] == 4 * face["messages"]


REFUSED = [
    "--block-edge 4",
    "--variant tpod --block-edge 4x4",
    "--variant tpod --block-order none",
    "--variant tpod --order SR --prepost",
    "--task-queue stealing",
]
ORDERED = ["--order SR", "--variant mate --prepost"]
"""Of Jacobi3D, where the order of calls is that of blocks."""


@pytest.mark.parametrize(("parse", "lines"), [(minighost, REFUSED), (jacobi3d, REFUSED + ORDERED)])
def test_a_wrong_command_line_is_refused(
    parse: Callable[[list[str]], object], lines: list[str], snapshot: SnapshotAssertion
) -> None:
    assert {line: refusal(AppUsageError, parse, line.split()) for line in lines} == snapshot
