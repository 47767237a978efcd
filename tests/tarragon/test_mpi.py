"""Graphs over MPI processes: the applications give the right result whatever the metadata is."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.mate.test_mpi import Start as Python
from tests.mate.test_mpi import start as python

__all__ = ["python"]

RING = ("runner.apps.ring", "--laps", "20", "--size", "1000")
ALIGN = ("runner.apps.needleman_wunsch", "--length", "700", "--rows", "64", "--columns", "96")
FACTOR = ("runner.apps.sparse_lu", "--input", "tiny", "--width", "8", "--relax", "4")
THREADS = ("--threads", "service", "--workers", "2", "--affinity", "none")
POOL = ("--threads", "workers", "--workers", "2", "--affinity", "none")
Start = Callable[..., dict[str, Any]]

pytestmark = pytest.mark.mpi


@pytest.fixture
def start(python: Python) -> Start:
    """``start(processes, "module", ...)`` runs an application and returns its last line."""

    def run(processes: int, module: str, *words: str, code: int = 0) -> dict[str, Any]:
        done = python(processes, "-m", module, *words)
        assert done.returncode == code, done.stderr
        if code:
            return {"stderr": done.stderr}
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    return run


@pytest.mark.parametrize(
    ("processes", "words"),
    [
        (2, (*RING, "--variant", "mpi")),
        (2, (*RING, "--variant", "tarragon")),
        (3, (*RING, "--variant", "tarragon", "--tasks", "7", *THREADS)),
        (1, (*RING, "--variant", "compiled", "--tasks", "3")),
        (2, (*RING, "--variant", "compiled")),
        (3, (*RING, "--variant", "compiled", "--tasks", "7", *THREADS)),
        (2, (*ALIGN, "--variant", "mpi")),
        (3, (*ALIGN, "--variant", "mpi")),
        (2, (*ALIGN, "--variant", "async", "--window", "2")),
        (1, (*ALIGN, "--variant", "block")),
        (3, (*ALIGN, "--variant", "block", "--priority", "wavefront")),
        (2, (*ALIGN, "--variant", "block", *THREADS)),
        (2, (*ALIGN, "--variant", "panel", "--thread-level", "serialized", *THREADS)),
        (2, (*FACTOR, "--variant", "tarragon", "--aggregation", *THREADS)),
        (
            2,
            (
                *ALIGN,
                "--variant",
                "panel",
                "--task-queue",
                "private",
                "--task-affinity",
                "block",
                *THREADS,
            ),
        ),
        (3, (*RING, "--variant", "tarragon", "--tasks", "7", *POOL)),
        (3, (*RING, "--variant", "compiled", "--tasks", "7", *POOL)),
        (2, (*ALIGN, "--variant", "panel", "--thread-level", "serialized", *POOL)),
        (2, (*FACTOR, "--variant", "tarragon", "--aggregation", *POOL)),
        (3, (*FACTOR, "--variant", "tarragon", "--task-queue", "stealing", *POOL)),
        (2, (*FACTOR, "--variant", "mpi")),
        (4, (*FACTOR, "--variant", "mpi")),
        (4, (*FACTOR, "--variant", "tarragon")),
        (4, (*FACTOR, "--variant", "tarragon", "--tagging", "--aggregation")),
        (2, (*FACTOR, "--variant", "tarragon", "--task-queue", "stealing", *THREADS)),
    ],
)
def test_the_result_is_right(start: Start, processes: int, words: tuple[str, ...]) -> None:
    found = start(processes, *words)
    assert found["verified"] is True
    assert found["ranks"] == processes
    assert found["seconds"] > 0


@pytest.mark.parametrize("processes", [2, 3])
def test_any_compiled_graph(python: Python, processes: int) -> None:
    done = python(processes, "-m", "tests.tarragon.mix", "30")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*RING, "--variant", "none"), "--variant none: expected one of mpi, tarragon, compiled"),
        ((*RING, "--tasks", "4"), "--tasks needs --variant tarragon"),
        (
            (*ALIGN, "--variant", "panel", "--aggregation"),
            "--aggregation means nothing to compiled tasks",
        ),
        ((*ALIGN, "--workers", "2"), "--workers means nothing to --variant mpi"),
        (
            (*ALIGN, "--variant", "panel", "--threads", "service", "--workers", "250"),
            "--workers 250, but this process may use only",
        ),
        ((*ALIGN, "--task-queue", "private"), "--task-queue means nothing to --variant mpi"),
        ((*FACTOR, "--mesh", "3x1"), "--mesh 3x1: expected a mesh of 2 processes"),
        (
            (*FACTOR, "--variant", "tarragon", "--task-affinity", "block"),
            "needs a queue for each worker",
        ),
        ((*FACTOR, "--task-affinity", "block"), "--task-affinity means nothing to --variant mpi"),
    ],
)
def test_a_wrong_command_line_is_said_once(start: Start, words: tuple[str, ...], said: str) -> None:
    text = start(2, *words, code=2)["stderr"]
    assert text.count(said) == 1
    assert "Traceback" not in text
