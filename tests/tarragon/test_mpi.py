"""Graphs over MPI processes: the applications give the right result whatever the metadata is."""

from __future__ import annotations

import json

import pytest

from tests.apps.conftest import Launch, check_refusals, launch
from tests.mate.test_mpi import Start as Python
from tests.mate.test_mpi import start as python

__all__ = ["launch", "python"]

RING = ("--laps", "20", "--size", "1000")
ALIGN = ("--length", "700", "--rows", "64", "--columns", "96")
FACTOR = ("--input", "tiny", "--width", "8", "--relax", "4")
PROBLEMS = {"ring": RING, "needleman_wunsch": ALIGN, "sparse_lu": FACTOR}
THREADS = "--threads service --workers 2 --affinity none"
POOL = "--threads workers --workers 2 --affinity none"
SERIALIZED = f"panel --thread-level serialized {THREADS}"

pytestmark = pytest.mark.mpi
# The applications take no time of their start.
SERIES = """
import importlib, json, sys
from runner.apps.common_mpi import run, single_threaded_blas
single_threaded_blas()
main = importlib.import_module("runner.apps." + sys.argv[1] + ".application").main
series = json.loads(sys.argv[2])
run("series", "multiple", lambda comm: max([main(comm, words) for words in series]))
"""
RUNS = {
    ("ring", 1): ["compiled --tasks 3"],
    ("ring", 2): ["mpi", "tarragon", "compiled"],
    ("ring", 3): [
        f"{variant} --tasks 7 {threads}"
        for threads in (THREADS, POOL)
        for variant in ("tarragon", "compiled")
    ],
    ("needleman_wunsch", 1): ["block"],
    ("needleman_wunsch", 2): [
        *("mpi", "async --window 2", f"block {THREADS}", SERIALIZED),
        f"panel --task-queue private --task-affinity block {THREADS}",
        f"panel --thread-level serialized {POOL}",
    ],
    ("needleman_wunsch", 3): ["mpi", "block --priority wavefront"],
    ("sparse_lu", 2): [
        *("mpi", f"tarragon --aggregation {THREADS}", f"tarragon --aggregation {POOL}"),
        f"tarragon --task-queue stealing {THREADS}",
    ],
    ("sparse_lu", 3): [f"tarragon --task-queue stealing {POOL}"],
    ("sparse_lu", 4): ["mpi", "tarragon", "tarragon --tagging --aggregation"],
}
"""Variants with their options.  One job runs all of an application on a number of processes."""


@pytest.mark.parametrize(("app", "processes"), RUNS)
def test_the_result_is_right(launch: Launch, app: str, processes: int) -> None:
    variants = RUNS[app, processes]
    lines = [[*PROBLEMS[app], "--variant", *variant.split()] for variant in variants]
    done = launch(processes, "-c", SERIES, app, json.dumps(lines))
    assert done.code == 0, done.err + done.out
    found = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
    assert len(found) == len(lines)
    for result in found:
        assert result["verified"] is True
        assert result["ranks"] == processes
        assert result["seconds"] > 0


@pytest.mark.parametrize(
    ("app", "variant"),
    [
        ("ring", "tarragon"),
        ("needleman_wunsch", SERIALIZED),
        ("sparse_lu", f"tarragon --aggregation {POOL}"),
        *(
            pytest.param(app, variant, marks=pytest.mark.slow)
            for (app, processes), variants in RUNS.items()
            if processes == 2
            for variant in variants
            if variant not in ("tarragon", SERIALIZED, f"tarragon --aggregation {POOL}")
        ),
    ],
)
def test_the_command_line_starts_the_thread_level_it_needs(
    python: Python,
    app: str,
    variant: str,
) -> None:
    words = (*PROBLEMS[app], "--variant", *variant.split())
    done = python(2, "-m", f"runner.apps.{app}", *words)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["verified"], found["ranks"]) == (True, 2)


@pytest.mark.parametrize("processes", [2, 3])
def test_any_compiled_graph(python: Python, processes: int) -> None:
    done = python(processes, "-m", "tests.tarragon.mix", "30")
    assert done.returncode == 0, done.stdout + done.stderr


REFUSALS = {
    "ring": [
        ("--variant none", "--variant none: expected one of mpi, tarragon, compiled"),
        ("--tasks 4", "--tasks needs --variant tarragon"),
    ],
    "needleman_wunsch": [
        ("--variant panel --aggregation", "--aggregation means nothing to compiled tasks"),
        ("--workers 2", "--workers means nothing to --variant mpi"),
        (
            "--variant panel --threads service --workers 250",
            "--workers 250, but this process may use only",
        ),
        ("--task-queue private", "--task-queue means nothing to --variant mpi"),
    ],
    "sparse_lu": [
        ("--mesh 3x1", "--mesh 3x1: expected a mesh of 2 processes"),
        ("--variant tarragon --task-affinity block", "needs a queue for each worker"),
        ("--task-affinity block", "--task-affinity means nothing to --variant mpi"),
    ],
}


@pytest.mark.parametrize("app", REFUSALS)
def test_a_wrong_command_line_is_said_once(launch: Launch, app: str) -> None:
    common = " ".join(PROBLEMS[app])
    refusals = [(f"{common} {options}", said) for options, said in REFUSALS[app]]
    check_refusals(launch, 2, app, refusals)
