"""Graphs over MPI processes: the applications give the right result whatever the metadata is."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.apps.conftest import Launch, launch, refusal_of, run_commands

__all__ = ["launch"]

RING = ("--laps", "20", "--size", "1000")
ALIGN = ("--length", "700", "--rows", "64", "--columns", "96")
FACTOR = ("--input", "tiny", "--width", "8", "--relax", "4")
PROBLEMS = {"ring": RING, "needleman_wunsch": ALIGN, "sparse_lu": FACTOR}
THREADS = "--threads service --workers 2 --affinity none"
POOL = "--threads workers --workers 2 --affinity none"
SERIALIZED = f"panel --thread-level serialized {THREADS}"

pytestmark = pytest.mark.mpi
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
        *(f"tarragon --task-queue stealing {THREADS}", "tarragon --tagging --aggregation"),
    ],
    ("sparse_lu", 3): [
        *(f"tarragon --task-queue stealing {POOL}", "tarragon --tagging --aggregation"),
    ],
    ("sparse_lu", 4): ["tarragon --tagging --aggregation"],
}
"""Variants with their options.  One job runs all of a number of processes."""
LAYOUTS = [2, *(pytest.param(processes, marks=pytest.mark.slow) for processes in (1, 3, 4))]


@pytest.mark.parametrize("processes", LAYOUTS)
def test_the_results_are_right(launch: Launch, processes: int) -> None:
    lines = [
        [f"runner.programs.apps.{app}", *PROBLEMS[app], "--variant", *variant.split()]
        for (app, count), variants in RUNS.items()
        if count == processes
        for variant in variants
    ]
    for line, done in zip(lines, run_commands(launch, processes, lines), strict=True):
        assert done.code == 0, f"{line}: {done.err}{done.out}"
        result = done.result
        assert result["verified"] is True
        assert result["ranks"] == processes
        assert result["seconds"] > 0


@pytest.mark.parametrize(
    ("app", "variant"),
    [
        ("needleman_wunsch", SERIALIZED),
        *(
            pytest.param(app, variant, marks=pytest.mark.slow)
            for (app, processes), variants in RUNS.items()
            if processes == 2
            for variant in variants
            if variant != SERIALIZED
        ),
    ],
)
def test_the_command_line_starts_the_thread_level_it_needs(
    launch: Launch,
    app: str,
    variant: str,
) -> None:
    words = (*PROBLEMS[app], "--variant", *variant.split())
    done = launch(2, "-m", f"runner.programs.apps.{app}", *words)
    assert done.code == 0, done.err
    assert (done.result["verified"], done.result["ranks"]) == (True, 2)


@pytest.mark.parametrize(
    ("processes", "graphs"),
    [(3, 15), *(pytest.param(n, 30, marks=pytest.mark.slow) for n in (2, 3))],
)
def test_any_compiled_graph(launch: Launch, processes: int, graphs: int) -> None:
    done = launch(processes, "-m", "tests.tarragon.mix", str(graphs))
    assert done.code == 0, done.out + done.err


REFUSED = {
    "ring": ["--variant none", "--tasks 4"],
    "needleman_wunsch": [
        "--variant panel --aggregation",
        "--workers 2",
        "--variant panel --threads service --workers 250",
        "--task-queue private",
    ],
    "sparse_lu": [
        "--mesh 3x1",
        "--variant tarragon --task-affinity block",
        "--task-affinity block",
    ],
}


def test_a_wrong_command_line_is_said_once(launch: Launch, snapshot: SnapshotAssertion) -> None:
    cases = [(app, options) for app, each in REFUSED.items() for options in each]
    lines = [
        [f"runner.programs.apps.{app}", *PROBLEMS[app], *options.split()] for app, options in cases
    ]
    ended = zip(cases, run_commands(launch, 2, lines), strict=True)
    assert {f"{app} {options}": refusal_of(done, app) for (app, options), done in ended} == snapshot
