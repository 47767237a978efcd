"""The variants of Jacobi3D under the real mpirun: bits, breakdown, refused options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from runner.programs.apps.common.models import MATE_VARIANTS
from runner.programs.apps.jacobi3d.options import VARIANTS
from tests.apps.conftest import Job, Launch, refusal_of, results_of, successes

pytestmark = pytest.mark.mpi

THREADS = {"OMP_NUM_THREADS": "3"}
ONE_WORKER = [
    "mpi",
    "overlap",
    "overlap --local-grid 2x1x3 --ranks-per-process 6",
    "threads",
    "over --ranks-per-process 4",
    "over --ranks-per-process 3 --in-process --split 2",
    "barrier --ranks-per-process 4",
    "mate --ranks-per-process 4",
    "mate --local-grid 2x2x1 --ranks-per-process 4 --split 3",
    "mate --ranks-per-process 1 --thread-level serialized",
    "over --ranks-per-process 3 --core python --split 2",
    "mate --ranks-per-process 4 --core python",
]
TWO_WORKERS = [
    "threads --workers 2",
    "openmp",
    "over --workers 2 --ranks-per-process 4",
    "barrier --workers 2 --ranks-per-process 5",
    "mate --workers 2 --ranks-per-process 6",
    "mate --workers 2 --local-grid 2x1x1 --affinity none",
    "mate --workers 2 --ranks-per-process 4 --core python",
    "over --workers 2 --ranks-per-process 4 --in-process",
]
EACH = [
    "mpi",
    "overlap --local-grid 2x1x3 --ranks-per-process 6",
    "openmp",
    "over --ranks-per-process 3 --in-process --split 2",
    "barrier --ranks-per-process 4",
    "mate --local-grid 2x2x1 --ranks-per-process 4 --split 3",
    "mate --workers 2 --ranks-per-process 4 --core python",
]
"""One form of each variant that no other group of the job has."""
TIMES = ("compute_s", "mpi_s", "buffering_s", "waiting_s")


WORKERS = "--workers 2 --threads service"
REPEATED = [
    "threads --workers 2",
    *(f"{variant} --ranks-per-process 2" for variant in ("over", "mate")),
]
GRAPHS = [
    "tarragon --ranks-per-process 5",
    f"tarragon --ranks-per-process 4 {WORKERS} --task-queue private --task-affinity block",
    f"tarragon --ranks-per-process 4 {WORKERS} --thread-level serialized",
    f"tarragon --ranks-per-process 8 {WORKERS} --task-queue stealing",
    "tarragon --ranks-per-process 4 --local-grid 2x2x1 --priority edges",
]
PADDED = ("mpi", "overlap", "over", "mate", "tarragon")
UNFILLED = [
    *("mpi", "overlap", "threads", "openmp", "tpod"),
    *(f"{variant} --ranks-per-process 2" for variant in (*MATE_VARIANTS, "tarragon")),
]
REFUSED = [
    "--variant mate --local-grid 1x1x8",
    "--variant threads --workers 200",
    "--variant mate --workers 200",
    "--variant tpod --workers 250",
    "--variant mate --tagging",
    "--variant tarragon --split 2",
    "--variant tarragon --workers 2",
]
BROKEN = """
from runner.programs.apps.common import tpod as common_tpod
from runner.programs.apps.jacobi3d import halo, mated, variant_tarragon

make, start = mated.Part.__init__, variant_tarragon.Cells.vinit
begin = common_tpod.Faces.__init__

def wrong(self, *arguments):
    make(self, *arguments)
    self.in_parts = []  # what compiled regions unpack

def forgetful(self):
    start(self)
    self.ghosts = self.ghosts[:0]

def deaf(self, *arguments):
    begin(self, *arguments)
    self.in_parts = [part.copy() for part in self.in_parts]

CHANGES = {
    "ghosts": [
        (mated.Part, "unpack", lambda self, field: None),
        (mated.Part, "__init__", wrong),
        (variant_tarragon.Cells, "vinit", forgetful),
        (common_tpod.Faces, "__init__", deaf),
        (halo.Halo, "exchange", lambda self, meter: None),
        (halo.Halo, "finish", lambda self, requests, meter: self._wait(requests)),
    ]
}
"""


def forms(problem: str, variants: Sequence[str]) -> list[str]:
    common = f"{problem} --iterations 9 --block 5 --verify full"
    return [f"{common} --variant {variant}" for variant in variants]


def repeated() -> list[str]:
    common = "--input tiny --verify full"
    return [
        *(f"{common} --repetitions 3 --variant {variant}" for variant in REPEATED),
        *(f"{common} --affinity none --repetitions 2 --variant {graph}" for graph in GRAPHS),
    ]


def padded() -> list[str]:
    """Each variant with short and with longer messages."""
    common = "--input tiny --verify full --variant"
    return [
        f"{common} {variant} {more} {'' if variant == 'mpi' else '--ranks-per-process 2'}"
        for variant in PADDED
        for more in ("", "--padding 5")
    ]


@pytest.fixture(scope="module")
def job() -> Job:
    """What runs on two processes."""
    python = [f"{variant} --ranks-per-process 2 --core python" for variant in MATE_VARIANTS]
    # Enough cells for 200 parts, too few for 8 parts of z.
    size = "--size 32x64x15 --iterations 2"
    groups = {
        "bits": forms("--size 12x13x22 --grid 1x1x2", EACH),
        "repeated": repeated(),
        "padded": padded(),
        "layout": ["--input tiny --variant mate --ranks-per-process 4 --local-grid 1x2x2"],
        "refused": [f"{size} {options}" for options in REFUSED],
        "unfilled": [
            f"broken:ghosts --input tiny --verify full --variant {variant}"
            for variant in (*UNFILLED, *python)
        ],
    }
    lines = {name: [line.split() for line in group] for name, group in groups.items()}
    return Job(2, "jacobi3d", lines, env=THREADS, broken=BROKEN)


def test_every_bit_as_in_a_serial_run(launch: Launch, job: Job) -> None:
    check_bits(successes(job.of(launch, "bits")), 2, EACH)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processes", "problem"),
    [
        *[(1, "--size 13x12x15"), (2, "--size 22x12x13 --grid 2x1x1")],
        (2, "--size 12x13x22 --grid 1x1x2"),
        (4, "--size 18x24x17 --grid 1x2x2"),
    ],
)
def test_every_bit_of_every_form(launch: Launch, processes: int, problem: str) -> None:
    every = ONE_WORKER + TWO_WORKERS
    lines = [line.split() for line in forms(problem, every)]
    found = results_of(launch, processes, "jacobi3d", lines, env=THREADS)
    check_bits(found, processes, every)


def check_bits(found: list[dict[str, Any]], processes: int, variants: Sequence[str]) -> None:
    assert [r["variant"] for r in found] == [v.split()[0] for v in variants]
    assert all(r["verified"] is True for r in found)
    assert {r["threads"] for r in found if r["variant"] == "openmp"} == {3}
    for result in found:
        check_breakdown(result)
    check_messages(found, processes)


def check_breakdown(result: dict[str, Any]) -> None:
    """The parts are those of the workers' time and add up to the solver's."""
    parts = [result[key] for key in TIMES]
    assert all(part >= 0 for part in parts)
    total = sum(parts) + result["other_s"] + result["end_s"]
    assert total == pytest.approx(result["solver_s"], rel=1e-9)
    assert result["end_s"] >= -1e-12
    # What was measured is not more than there was: nothing is counted twice.  One worker reads the
    # clocks of the others while these run, hence the allowance.
    assert result["other_s"] > -1e-4 - 0.02 * result["solver_s"]
    assert 0 < result["compute_cpu_s"] <= result["compute_s"]
    assert result["rank_imbalance"] >= 0
    for name, summary in result["phases"].items():
        assert summary["mean"] == result[f"{name}_s"]


def check_messages(found: list[dict[str, Any]], processes: int) -> None:
    """Sharing the grid leaves the bytes of flat MPI, over-decomposition alone adds some."""
    flat = next(r for r in found if r["variant"] == "mpi")
    for result in found:
        parts = result["ranks"] // processes
        assert parts == (result["odf"] * result["workers"] if result["ranks"] > processes else 1)
        if result["variant"] == "over":
            assert result["bytes"] > flat["bytes"]
            assert result["messages"] > flat["messages"]
        else:
            assert result["bytes"] == flat["bytes"]
        if result["variant"] in ("overlap", "threads", "openmp"):
            assert result["messages"] == flat["messages"]


def test_repetitions_start_anew(launch: Launch, job: Job) -> None:
    check_repeated(successes(job.of(launch, "repeated")))


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 3])
def test_repetitions_on_other_processes(launch: Launch, processes: int) -> None:
    lines = [line.split() for line in repeated()]
    check_repeated(results_of(launch, processes, "jacobi3d", lines))


def check_repeated(found: list[dict[str, Any]]) -> None:
    for result in found:
        assert result["verified"] is True
        check_breakdown(result)
    for result in found[: len(REPEATED)]:
        assert result["residual"] == pytest.approx(result["expected"], rel=1e-12)
        assert sorted(result["repetitions_s"])[1] == result["solver_s"]


def test_longer_messages_give_the_same_bits(launch: Launch, job: Job) -> None:
    found = successes(job.of(launch, "padded"))
    assert [result["variant"] for result in found[::2]] == list(PADDED)
    for plain, longer in zip(found[0::2], found[1::2], strict=True):
        assert plain["verified"] is longer["verified"] is True
        assert longer["messages"] == plain["messages"]
        assert longer["bytes"] > 3 * plain["bytes"]


def test_ghosts_that_are_not_filled_show_in_every_variant(launch: Launch, job: Job) -> None:
    assert len(UNFILLED) == len(VARIANTS)
    for done in job.of(launch, "unfilled"):
        assert (done.code, done.result["verified"]) == (1, False)


def test_ranks_of_all_processes_count(launch: Launch, job: Job) -> None:
    (done,) = job.of(launch, "layout")
    assert done.code == 0, done.err
    assert done.result["verified"] is True
    assert (done.result["ranks"], done.result["processes"], done.result["odf"]) == (8, 2, 4)
    assert done.result["local_grid"] == [1, 2, 2]
    assert done.result["grid"] == [1, 1, 2]
    assert "1x1x2" in done.out
    assert "1x2x2" in done.out


def test_what_cannot_run_is_one_message(
    launch: Launch, job: Job, snapshot: SnapshotAssertion
) -> None:
    ended = zip(REFUSED, job.of(launch, "refused"), strict=True)
    assert {options: refusal_of(done, "jacobi3d") for options, done in ended} == snapshot


def test_compiled_regions_in_python_give_the_same_bits(launch: Launch) -> None:
    """The stencil and the copies are plain Python too, and no index is negative.

    With one thread the variant openmp is flat MPI.
    """
    common = "--size 7x8x9 --iterations 2 --verify full --variant"
    cut = "--ranks-per-process 2 --split 2"
    lines = [f"{common} mate {cut}", f"{common} over {cut}", f"{common} openmp"]
    found = results_of(
        *(launch, 2, "jacobi3d", [line.split() for line in lines]),
        env={"MATE_CHECK": "1", "OMP_NUM_THREADS": "1"},
    )
    assert [result["verified"] for result in found] == [True] * 3
    assert found[-1]["threads"] == 1
