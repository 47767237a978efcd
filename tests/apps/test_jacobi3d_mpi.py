"""Jacobi3D under the real mpirun: bits, verification, messages and exit codes."""

from __future__ import annotations

import re
import textwrap

import pytest

from tests.apps.conftest import Launch, refusal_of, results_of, run_lines

pytestmark = pytest.mark.mpi

KEYS = {
    "app", "variant", "input", "size", "iterations", "grid", "ranks", "block", "solver_s",
    "verified", "residual", "expected", "mflops", "phases", "startup_s",
    "processes", "workers", "threads", "local_grid",
    "compute_s", "mpi_s", "buffering_s", "waiting_s",
    "other_s", "end_s", "compute_cpu_s", "messages", "bytes", "rank_imbalance", "odf",
}  # fmt: skip


@pytest.mark.parametrize(
    ("ranks", "series"),
    [
        pytest.param(1, ["9x7x5", "1x1x6"], marks=pytest.mark.slow),
        pytest.param(
            *(2, ["17x16x15 --grid 2x1x1 --block 3", "9x8x7 --grid 1x2x1", "4x4x4 --block 1"]),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(3, ["7x11x8 --grid 3x1x1", "20x13x14 --grid 1x3x1 --block 1", "1x1x7"]),
            marks=pytest.mark.slow,
        ),
        (4, ["9x10x11 --grid 2x2x1", "4x4x17 --grid 1x2x2 --block 5", "13x6x5 --grid 2x1x2"]),
        pytest.param(
            *(8, ["5x7x9 --grid 2x2x2", "17x3x2 --grid 8x1x1", "32x16x8"]),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_every_bit_as_in_a_serial_run(launch: Launch, ranks: int, series: list[str]) -> None:
    common = "--iterations 25 --verify full --size "
    named = ["--input tiny", "--input tiny --verify full"]
    lines = [line.split() for line in [*(common + case for case in series), *named]]
    results = results_of(launch, ranks, "jacobi3d", lines)
    assert all(r["verified"] is True and r["ranks"] == ranks for r in results)
    for r in results[-2:]:
        assert r["residual"] == pytest.approx(r["expected"], rel=1e-12)


BROKEN = """
import numpy as np
from runner.programs.apps.jacobi3d import block
from runner.programs.apps.jacobi3d.halo import Halo
from runner.programs.apps.jacobi3d.variant_mpi import BasicMPI
from runner.errors import RunnerError

solve, load = BasicMPI.solve, block.load

def one_bit(self, iterations):
    done = solve(self, iterations)
    if self._comm.rank == 1:
        cells = self._block.interior
        cells[3, 2, 1] = np.nextafter(cells[3, 2, 1], 2.0)
    return done

def no_kernels(module):
    from mpi4py import MPI
    if MPI.COMM_WORLD.rank == 1:
        raise RunnerError("rank 1 has no kernels", code="test.error")
    return load(module)

def raising(self, iterations):
    if self._comm.rank == 1:
        raise RuntimeError("rank 1 is broken")
    return solve(self, iterations)

CHANGES = {
    "ghosts": [(Halo, "exchange", lambda self, meter: None)],
    "bit": [(BasicMPI, "solve", one_bit)],
    "kernels": [(block, "load", no_kernels)],
}
"""
"""Ghosts are never exchanged, the last bit of one cell is wrong, one rank cannot compile."""


def test_results_and_refusals(launch: Launch) -> None:
    lines = [
        "--input tiny --repetitions 3",
        "--size 10 --iterations 5",
        "broken:ghosts --input tiny",
        "broken:bit --input tiny --verify full",
        "broken:kernels --input tiny",
        "--grid 2x2x1",
        "--input nothing",
    ]
    done, by_hand, ghosts, bit, kernels, grid, named = run_lines(
        launch, 2, "jacobi3d", [line.split() for line in lines], broken=BROKEN
    )
    assert done.code == 0, done.err
    result = done.result
    assert set(result) == KEYS | {"repetitions_s"}
    assert result["verified"] is True
    assert sorted(result["repetitions_s"])[1] == result["solver_s"] > 0
    assert set(result["phases"]) == {"compute", "mpi", "buffering", "waiting"}
    assert all(0 <= p["mean"] <= p["max"] for p in result["phases"].values())
    assert result["mflops"] == pytest.approx(15 * 16**3 * 20 / result["solver_s"] / 1e6)
    # A size that has no expected result is not checked.
    assert by_hand.code == 0
    assert by_hand.result["verified"] is None
    assert by_hand.result["expected"] is None
    assert "unchecked" in by_hand.out
    assert set(by_hand.result) == KEYS
    assert (ghosts.code, ghosts.result["verified"]) == (1, False)
    failed = ghosts.out.splitlines()[-2]
    assert repr(ghosts.result["residual"]) in failed
    assert repr(ghosts.result["expected"]) in failed
    assert (bit.code, bit.result["verified"]) == (1, False)
    # 2 ranks cut z: rank 1 begins at z = 8.
    differing = bit.out.splitlines()[-2]
    assert re.findall(r"(?<= )[0-9]+(?= )", differing) == ["1", "1"], "cells, rank"
    assert " x=1 y=2 z=11:" in differing
    assert kernels.code == 1, kernels.err
    assert kernels.err.count("jacobi3d: error:") == 1
    assert "Traceback" not in kernels.err
    assert re.findall("[0-9]+", refusal_of(grid, "jacobi3d"))[:5] == ["2", "2", "1", "4", "2"]
    assert "--input nothing" in refusal_of(named, "jacobi3d")  # data


def test_exception_on_one_rank_ends_all(launch: Launch) -> None:
    code = f"{BROKEN}\nBasicMPI.solve = raising\n" + textwrap.dedent(
        """
        import sys
        from time import perf_counter
        from runner.programs.apps.common.mpi import run
        from runner.programs.apps.jacobi3d.application import main
        run("jacobi3d", "single", lambda comm: main(comm, sys.argv[1:], perf_counter()))
        """
    )
    done = launch(2, "-c", code, "--input", "tiny")
    assert done.code != 0
    assert "rank 1 is broken" in done.err
    assert "solver" not in done.out


def test_wrong_use_ends_the_launch_with_2(launch: Launch) -> None:
    done = launch(2, "-m", "runner.programs.apps.jacobi3d", "--input", "nothing")
    assert "--input nothing" in refusal_of(done, "jacobi3d")  # data
