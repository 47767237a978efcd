"""The variants of Jacobi3D under the real mpirun: bits, breakdown, refused options."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest

from runner.apps.common_models import MATED
from runner.apps.jacobi3d.options import VARIANTS
from tests.apps.conftest import Launch, check_refusals, results_of

pytestmark = pytest.mark.mpi

APP = ("-m", "runner.apps.jacobi3d")
SERIES = """
import json, sys
from runner.apps.common_mpi import run
from runner.apps.jacobi3d.application import main
series = json.loads(sys.argv[1])
run("series", "multiple", lambda comm: max([main(comm, options, 0.0) for options in series]))
"""
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


def run_series(launch: Launch, processes: int, lines: list[str]) -> Any:
    """One job that runs all these option lines one after the other."""
    words = json.dumps([line.split() for line in lines])
    return launch(processes, "-c", SERIES, words, env={"OMP_NUM_THREADS": "3"})


def results(done: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]


@pytest.mark.parametrize(
    ("processes", "problems"),
    [
        pytest.param(1, ["--size 13x12x15"], marks=pytest.mark.slow),
        (2, ["--size 12x13x22 --grid 1x1x2", "--size 22x12x13 --grid 2x1x1"]),
        pytest.param(4, ["--size 18x24x17 --grid 1x2x2"], marks=pytest.mark.slow),
    ],
)
def test_every_bit_as_in_a_serial_run(launch: Launch, processes: int, problems: list[str]) -> None:
    variants = ONE_WORKER + TWO_WORKERS
    common = "--iterations 9 --block 5 --verify full"
    lines = [f"{problem} {common} --variant {v}" for problem in problems for v in variants]
    done = run_series(launch, processes, lines)
    assert done.code == 0, done.out + done.err
    found = results(done)
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


def test_repetitions_start_anew(launch: Launch) -> None:
    variants = ["threads --workers 2", *(f"{v} --ranks-per-process 2" for v in ("over", "mate"))]
    common = "--input tiny --verify full --repetitions 3 --variant"
    done = run_series(launch, 2, [f"{common} {variant}" for variant in variants])
    assert done.code == 0, done.err
    for result in results(done):
        assert result["verified"] is True
        assert result["residual"] == pytest.approx(result["expected"], rel=1e-12)
        assert sorted(result["repetitions_s"])[1] == result["solver_s"]
        check_breakdown(result)


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
    options = [f"--input tiny --verify full --variant {line}".split() for line in lines]
    done = launch(2, "-c", BROKEN + SERIES, json.dumps(options))
    assert done.code == 1
    assert [r["verified"] for r in results(done)] == [False] * len(lines)


@pytest.mark.parametrize("variant", ["mate", "over"])
def test_compiled_regions_in_python_give_the_same_bits(launch: Launch, variant: str) -> None:
    """The stencil and the copies are plain Python too, and no index is negative."""
    options = "--size 7x8x9 --iterations 2 --verify full --ranks-per-process 2 --split 2"
    done = launch(
        *(2, *APP, "--variant", variant, *options.split()),
        env={"MATE_CHECK": "1"},
    )
    assert done.code == 0, done.out + done.err
    assert "every bit as in the serial run" in done.out


def test_with_one_thread_the_variant_openmp_is_flat_mpi(launch: Launch) -> None:
    options = ["--input", "tiny", "--verify", "full", "--variant", "openmp"]
    done = launch(2, *APP, *options, env={"OMP_NUM_THREADS": "1"})
    assert done.code == 0, done.err
    assert (done.result["verified"], done.result["threads"]) == (True, 1)


def test_longer_messages_give_the_same_bits(launch: Launch) -> None:
    variants = ("mpi", "overlap", "over", "mate", "tarragon")
    lines = []
    for variant in variants:
        parts = [] if variant == "mpi" else ["--ranks-per-process", "2"]
        line = ["--input", "tiny", "--verify", "full", "--variant", variant, *parts]
        lines += [line, [*line, "--padding", "5"]]
    found = results_of(launch, 2, "jacobi3d", lines)[: len(lines)]
    assert [r["variant"] for r in found[::2]] == list(variants)
    for plain, padded in zip(found[0::2], found[1::2], strict=True):
        assert padded["verified"] is True
        assert padded["messages"] == plain["messages"]
        assert padded["bytes"] > 3 * plain["bytes"]


WORKERS = "--workers 2 --threads service"


@pytest.mark.parametrize(
    ("processes", "options"),
    [
        (1, "--ranks-per-process 5"),
        (3, "--ranks-per-process 4 --local-grid 2x2x1 --priority edges"),
        (1, f"--ranks-per-process 8 {WORKERS} --task-queue stealing"),
        (2, f"--ranks-per-process 4 {WORKERS} --task-queue private --task-affinity block"),
        (2, f"--ranks-per-process 4 {WORKERS} --thread-level serialized"),
    ],
)
def test_a_graph_gives_the_same_bits_however_it_runs(
    launch: Launch, processes: int, options: str
) -> None:
    common = "--input tiny --verify full --affinity none --repetitions 2 --variant tarragon"
    done = launch(processes, *APP, *common.split(), *options.split())
    assert done.code == 0, done.out + done.err
    assert done.result["verified"] is True
    check_breakdown(done.result)


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
    ("--variant mate --tagging", "--tagging means nothing to --variant mate"),
    ("--variant tarragon --split 2", "--split means nothing to --variant tarragon"),
    ("--variant tarragon --workers 2", "--workers 2 needs --threads workers or service"),
]


def test_what_cannot_run_is_one_message(launch: Launch) -> None:
    # Enough cells for 200 parts, too few for 8 parts of z.
    common = "--size 32x64x15 --iterations 2"
    check_refusals(launch, 2, "jacobi3d", [(f"{common} {o}", words) for o, words in REFUSALS])
