"""The variants of Jacobi3D under the real mpirun: bits, breakdown, refused options."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from runner.apps.common_models import MATED
from runner.apps.jacobi3d.options import VARIANTS
from tests.apps.conftest import Launch, check_refusals, results_of, run_lines

pytestmark = pytest.mark.mpi

APP = ("-m", "runner.apps.jacobi3d")
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
TIMES = ("compute_s", "mpi_s", "buffering_s", "waiting_s")


@pytest.mark.parametrize(
    ("processes", "problems"),
    [
        (2, ["--size 12x13x22 --grid 1x1x2"]),
        pytest.param(1, ["--size 13x12x15"], marks=pytest.mark.slow),
        pytest.param(2, ["--size 22x12x13 --grid 2x1x1"], marks=pytest.mark.slow),
        pytest.param(4, ["--size 18x24x17 --grid 1x2x2"], marks=pytest.mark.slow),
    ],
)
def test_every_bit_as_in_a_serial_run(launch: Launch, processes: int, problems: list[str]) -> None:
    variants = ONE_WORKER + TWO_WORKERS
    common = "--iterations 9 --block 5 --verify full"
    lines = [f"{problem} {common} --variant {v}".split() for problem in problems for v in variants]
    found = results_of(launch, processes, "jacobi3d", lines, env=THREADS)
    assert [r["variant"] for r in found] == [v.split()[0] for v in variants] * len(problems)
    assert all(r["verified"] is True for r in found)
    assert {r["threads"] for r in found if r["variant"] == "openmp"} == {3}
    for result in found:
        check_breakdown(result)
    for first in range(0, len(found), len(variants)):
        check_messages(found[first : first + len(variants)], processes)


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


@pytest.mark.parametrize(
    "processes", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 3))]
)
def test_repetitions_and_longer_messages_give_the_same_bits(launch: Launch, processes: int) -> None:
    common = "--input tiny --verify full"
    lines = [f"{common} --repetitions 3 --variant {variant}" for variant in REPEATED]
    lines += [f"{common} --affinity none --repetitions 2 --variant {graph}" for graph in GRAPHS]
    for variant in PADDED:
        parts = "" if variant == "mpi" else "--ranks-per-process 2"
        lines += [f"{common} {more} {parts} --variant {variant}" for more in ("", "--padding 5")]
    found = results_of(launch, processes, "jacobi3d", [line.split() for line in lines])
    for result in found:
        assert result["verified"] is True
    for result in found[: len(REPEATED)]:
        assert result["residual"] == pytest.approx(result["expected"], rel=1e-12)
        assert sorted(result["repetitions_s"])[1] == result["solver_s"]
    for result in found[: len(REPEATED) + len(GRAPHS)]:
        check_breakdown(result)
    pairs = found[len(REPEATED) + len(GRAPHS) :]
    assert [result["variant"] for result in pairs[::2]] == list(PADDED)
    for plain, padded in zip(pairs[0::2], pairs[1::2], strict=True):
        assert padded["messages"] == plain["messages"]
        assert padded["bytes"] > 3 * plain["bytes"] or plain["messages"] == 0


BROKEN = textwrap.dedent(
    """
    from runner.apps import common_tpod
    from runner.apps.jacobi3d import halo, mated, variant_tarragon
    mated.Part.unpack = lambda self, field: None
    make = mated.Part.__init__
    def wrong(self, *arguments):
        make(self, *arguments)
        self.received = []  # what compiled regions unpack
    mated.Part.__init__ = wrong
    start = variant_tarragon.Cells.vinit
    def forgetful(self):
        start(self)
        self.ghosts = self.ghosts[:0]
    variant_tarragon.Cells.vinit = forgetful
    begin = common_tpod.Faces.__init__
    def deaf(self, *arguments):
        begin(self, *arguments)
        self.in_parts = [part.copy() for part in self.in_parts]
    common_tpod.Faces.__init__ = deaf
    halo.Halo.exchange = lambda self, meter: None
    halo.Halo.finish = lambda self, requests, meter: self._wait(requests)
    """
)


def test_ghosts_that_are_not_filled_show_in_every_variant(launch: Launch) -> None:
    cut = (*MATED, "tarragon")
    lines = [
        "mpi",
        "overlap",
        "threads",
        "openmp",
        "tpod",
        *(f"{v} --ranks-per-process 2" for v in cut),
    ]
    assert len(lines) == len(VARIANTS)
    lines += [f"{v} --ranks-per-process 2 --core python" for v in MATED]
    words = [f"--input tiny --verify full --variant {line}".split() for line in lines]
    for done in run_lines(launch, 2, "jacobi3d", words, broken=BROKEN):
        assert (done.code, done.result["verified"]) == (1, False)


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


def test_the_command_line_starts_the_thread_level_it_needs(launch: Launch) -> None:
    done = launch(
        *(2, *APP, "--input", "tiny", "--variant", "mate", "--workers", "1"),
        *("--ranks-per-process", "4", "--local-grid", "1x2x2"),
    )
    assert done.code == 0, done.err
    assert done.result["verified"] is True
    assert (done.result["ranks"], done.result["processes"], done.result["odf"]) == (8, 2, 4)
    assert done.result["local_grid"] == [1, 2, 2]
    assert "8 ranks as 1x1x2, each process 1x2x2" in done.out


REFUSALS = [
    ("--variant mate --local-grid 1x1x8", "--local-grid 1x1x8 in a process grid of"),
    ("--variant threads --workers 200", "--workers 200, but this process may use only"),
    ("--variant mate --workers 200", "--workers 200, but this process may use only"),
    ("--variant tpod --workers 250", "--workers 250, but this process may use only"),
    ("--variant mate --tagging", "--tagging means nothing to --variant mate"),
    ("--variant tarragon --split 2", "--split means nothing to --variant tarragon"),
    ("--variant tarragon --workers 2", "--workers 2 needs --threads workers or service"),
]


def test_what_cannot_run_is_one_message(launch: Launch) -> None:
    # Enough cells for 200 parts, too few for 8 parts of z.
    common = "--size 32x64x15 --iterations 2"
    check_refusals(launch, 2, "jacobi3d", [(f"{common} {o}", words) for o, words in REFUSALS])
