"""Split phase, MATE and Tarragon in miniGhost: bits, the account of heat, messages, exit codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from runner.programs.apps.common.faces import FaceTables
from runner.programs.apps.minighost.domain import Domain
from tests.apps.conftest import Job, Launch, refusal_of, results_of, successes
from tests.apps.test_minighost_mpi import KEYS, check_breakdown

OVERLAPS = [
    *(
        f"overlap --order {order} --messages {messages}"
        for order in ("ISR", "SIR", "ISIR --prepost")
        for messages in ("aggregated", "variable")
    ),
    "overlap --local-grid 2x1x3",
]
RANKED = [
    "mate",
    "mate --ranks-per-process 3 --messages variable",
    "mate --local-grid 2x2x1 --split 3 --queue shared",
    "mate --ranks-per-process 4 --messages variable --split 2 --thread-level serialized",
    "mate --ranks-per-process 4 --workers 2 --affinity none",
    "mate --ranks-per-process 3 --core python",
    "mate --ranks-per-process 4 --core python --messages variable --workers 2 --affinity none",
]
SERVICE = "--workers 2 --threads service --affinity none"
TASKED = [
    "tarragon",
    "tarragon --ranks-per-process 3 --priority edges",
    "tarragon --local-grid 2x2x1",
    f"tarragon --ranks-per-process 4 {SERVICE} --task-queue stealing",
    f"tarragon --ranks-per-process 4 {SERVICE} --thread-level serialized",
]
MODELS = ["mpi", *OVERLAPS, *RANKED, *TASKED]
AGGREGATED = [model for model in OVERLAPS if "aggregated" in model]
THIN = ["mpi", *AGGREGATED, OVERLAPS[1], "mate --messages variable", "tarragon"]
"""Those that do not cut the cells of a process, for processes of one plane."""


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("processes", "problems", "thin"),
    [
        pytest.param(1, ["--size 9x7x5"], [], marks=pytest.mark.slow),
        pytest.param(
            2,
            ["--size 11x6x7 --grid 2x1x1", "--size 6x5x8 --grid 1x1x2"],
            ["--size 6x5x2 --grid 1x1x2"],
            marks=pytest.mark.slow,
        ),
        (4, ["--size 9x11x7 --grid 2x1x2"], ["--size 6x4x5 --grid 1x4x1"]),
    ],
)
def test_every_bit_as_in_a_serial_run(
    launch: Launch, processes: int, problems: list[str], thin: list[str]
) -> None:
    """In faces of 100 to 400 kB a blocking send does not return before it is received."""
    common = "--variables 3 --steps 7 --verify full --variant"
    lines = [
        f"{problem} {common} {model}".split()
        for some, models in ((problems, MODELS), (thin, THIN))
        for problem in some
        for model in models
    ]
    large = f"--size 128x96x{processes} --grid 1x1x{processes} --variables 4 --steps 2 --variant"
    models = [*AGGREGATED, "mate --ranks-per-process 1", "tarragon"]
    chains = [f"{large} {model}".split() for model in models]
    results = results_of(launch, processes, "minighost", lines + chains)
    assert all(result["verified"] is True for result in results)
    flat: dict[str, Any] = {}
    for result in results[: len(lines)]:
        assert set(result) == KEYS
        check_breakdown(result)
        check_parts(result)
        flat = result if result["variant"] == "mpi" else flat
        if result["size"] == flat["size"]:
            assert result["bytes"] == flat["bytes"]
            if result["variant"] == "overlap":
                many = 3 if result["grouping"] == "variable" else 1
                assert result["messages"] == many * flat["messages"]


def check_parts(result: dict[str, Any]) -> None:
    """Ranks and tasks are counted as such; tiles and threads are not."""
    parts = int(np.prod(result["local_grid"]))
    ranked = result["variant"] in ("mate", "tarragon")
    assert result["ranks"] == result["processes"] * (parts if ranked else 1)
    assert result["odf"] == (parts / result["workers"] if ranked else 1)
    assert 0 < result["compute_cpu_s"] <= result["compute_s"]


BROKEN = """
from runner.programs.apps.common import grid_tasks as common_grid_tasks
from runner.programs.apps.minighost import exchange, variant_mate

fill, make = common_grid_tasks.Cells.vinit, variant_mate.Part.__init__

def forgetful(self):
    fill(self)
    self.ghosts = self.ghosts[:0]

def deaf(self, *arguments):
    make(self, *arguments)
    self.in_parts = []

def finish(self, field, requests, meter, more):
    self._wait(requests)

CHANGES = {
    "ghosts": [
        (common_grid_tasks.Cells, "vinit", forgetful),
        (variant_mate.Part, "__init__", deaf),
        (exchange.Exchange, "finish", finish),
    ]
}
"""
REFUSED = [
    "--variant mate --local-grid 1x1x16",
    "--variant tarragon --ranks-per-process 4000",
    "--variant mate --workers 100",
    "--variant tarragon --threads service --workers 100",
    "--variant tpod --workers 250",
]


@pytest.fixture(scope="module")
def job() -> Job:
    """What runs on two processes."""
    # Parts of 2 x 2 at the face between both processes, three variables, eight steps.
    parts = "--size 8x8x8 --grid 2x1x1 --variables 3 --steps 8 --local-grid 1x2x2"
    repeated = "--input tiny --verify full --repetitions 3"
    cut = ("mate", "tarragon", "mate --core python")
    models = ["overlap", *(f"{model} --ranks-per-process 2" for model in cut)]
    # Enough cells for 100 parts, too few for 16 parts of z.
    size = "--size 12x12x14 --grid 2x1x1"
    groups = {
        "parts": [
            f"{parts} --variant {model}"
            for model in ("mate", "mate --messages variable", "mate --split 2", "tarragon")
        ],
        "repeated": [f"{repeated} --variant {model}" for model in models[:3]],
        "layout": ["--input tiny --variant mate --ranks-per-process 4 --local-grid 1x2x2"],
        "refused": [f"{size} {options}" for options in REFUSED],
        "unfilled": [f"broken:ghosts --input tiny --variant {model}" for model in models],
    }
    lines = {name: [line.split() for line in group] for name, group in groups.items()}
    return Job(2, "minighost", lines, broken=BROKEN)


@pytest.mark.mpi
def test_messages_are_those_of_parts_and_variables(launch: Launch, job: Job) -> None:
    found = successes(job.of(launch, "parts"))
    assert [r["messages"] // (2 * 4 * 8) for r in found] == [1, 3, 2, 1]
    assert {r["bytes"] for r in found} == {2 * 8 * 8 * 64 * 3}


@pytest.mark.mpi
def test_repetitions_start_anew(launch: Launch, job: Job) -> None:
    for result in successes(job.of(launch, "repeated")):
        assert result["verified"] is True
        assert sorted(result["repetitions_s"])[1] == result["solver_s"]


@pytest.mark.mpi
def test_ghosts_that_are_not_filled_break_the_account_of_heat(launch: Launch, job: Job) -> None:
    for done in job.of(launch, "unfilled"):
        assert (done.code, done.result["verified"]) == (1, False)
        assert done.result["heat_error"] > done.result["heat_bound"]


@pytest.mark.mpi
def test_ranks_of_all_processes_count(launch: Launch, job: Job) -> None:
    (done,) = job.of(launch, "layout")
    assert done.code == 0, done.err
    assert (done.result["ranks"], done.result["processes"], done.result["odf"]) == (8, 2, 4)
    assert done.result["grid"] == [2, 1, 1]
    assert "2x1x1" in done.out
    assert "1x2x2" in done.out


@pytest.mark.mpi
def test_what_cannot_run_is_one_message(
    launch: Launch, job: Job, snapshot: SnapshotAssertion
) -> None:
    ended = zip(REFUSED, job.of(launch, "refused"), strict=True)
    assert {options: refusal_of(done, "minighost") for options, done in ended} == snapshot


@pytest.mark.mpi
def test_compiled_regions_in_python_give_the_same_bits(launch: Launch) -> None:
    """The stencil and the copies are plain Python too, and no index is negative."""
    words = "--variant mate --size 5x4x6 --variables 2 --steps 2 --verify full"
    line = [*words.split(), "--ranks-per-process", "2"]
    done = launch(2, "-m", "runner.programs.apps.minighost", *line, env={"MATE_CHECK": "1"})
    assert done.code == 0, done.out + done.err
    assert done.result["verified"] is True


def test_tables_of_faces_name_each_variable_once() -> None:
    domain = Domain((6, 5, 4), (0, 0, 0), (3, 5, 4), 4)
    domain.reset()
    groups = [range(0, 2), range(2, 4)]
    found = [domain.faces(domain.whole, [(0, 1, 1), (2, 0, 2)], group) for group in groups]
    tables = FaceTables(found)
    assert tables.own.shape == tables.ghosts.shape == (8, 6)
    # Two faces of two variables: those of the first group come first.
    assert [int(box[0]) // 6 for box in tables.own] == [0, 1, 0, 1, 2, 3, 2, 3]
    for faces in found:
        faces.pack[0]()
    for (z0, z1, y0, y1, x0, x1), part in zip(tables.own.tolist(), tables.out_parts, strict=True):
        cells = domain.stack[0][z0:z1, y0:y1, x0:x1]
        assert cells.ravel().tolist() == part.tolist()
    assert [rank for _, rank, _ in tables.sends] == [1, 2, 1, 2]
    assert sum(buffer.size for buffer, _, _ in tables.sends) == 4 * (20 + 15)
