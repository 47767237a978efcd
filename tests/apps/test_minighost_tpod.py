"""Blocks as tasks give the bits of the serial run, however they are run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Launch = Callable[..., Any]

pytestmark = pytest.mark.mpi
GHOST = ("-m", "runner.apps.minighost", "--size", "12x10x14", "--variables", "3", "--steps", "5")
JACOBI = ("-m", "runner.apps.jacobi3d", "--size", "16x14x18", "--iterations", "5")
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


@pytest.mark.parametrize("program", [GHOST, JACOBI], ids=["minighost", "jacobi3d"])
@pytest.mark.parametrize("processes", [1, 2, 4])
@pytest.mark.parametrize("form", FORMS)
def test_the_bits_are_those_of_the_serial_run(
    launch: Launch, program: tuple[str, ...], processes: int, form: str
) -> None:
    done = launch(processes, *program, *TASKS, *form.split())
    assert done.code == 0, done.out + done.err
    assert done.result["verified"] is True
    assert "every bit as in the serial run" in done.out


def test_messages_of_each_variable(launch: Launch) -> None:
    for more in ("--order SR", "--prepost"):
        words = f"--messages variable --block-edge 5 {more}".split()
        done = launch(2, *GHOST, *TASKS, *words)
        assert done.code == 0, done.out + done.err
        assert done.result["verified"] is True


def test_faces_of_blocks_carry_the_cells_of_the_faces_of_the_process(launch: Launch) -> None:
    sent = {}
    for messages in ("block", "face"):
        words = f"--block-edge 5 --block-messages {messages} --barrier neighbours".split()
        sent[messages] = launch(2, *GHOST, *TASKS, *words).result
    assert sent["block"]["bytes"] == sent["face"]["bytes"]
    # Blocks of 2 x 2 at the face between both processes.
    assert sent["block"]["messages"] == 4 * sent["face"]["messages"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--block-edge 4", "--block-edge means nothing to --variant mpi: leave it out, or choose"),
        ("--variant tpod --block-edge 4x4", "--block-edge 4x4: expected a number of cells"),
        ("--variant tpod --block-order none", "--block-order none: expected one of cart"),
        ("--variant tpod --order SR --prepost", "--prepost needs receives that do not block"),
        ("--task-queue stealing", "--task-queue means nothing to --variant mpi"),
        ("--variant tpod --workers 250", "--workers 250, but this process may use only"),
    ],
)
@pytest.mark.parametrize("program", [GHOST, JACOBI], ids=["minighost", "jacobi3d"])
def test_a_wrong_command_line_is_said_once(
    launch: Launch, program: tuple[str, ...], words: str, said: str
) -> None:
    done = launch(2, *program, *words.split())
    assert done.code == 2
    assert done.err.count(said) == 1
    assert "Traceback" not in done.err


def test_the_order_of_calls_is_that_of_blocks_in_jacobi3d(launch: Launch) -> None:
    for words, said in (
        (["--order", "SR"], "--order means nothing to --variant mpi: leave it out, or choose"),
        (["--variant", "mate", "--prepost"], "--prepost means nothing to --variant mate"),
    ):
        done = launch(2, *JACOBI, *words)
        assert done.code == 2
        assert said in done.err
