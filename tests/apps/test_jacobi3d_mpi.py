"""Jacobi3D under the real mpirun: bits, verification, messages and exit codes."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.mpi

Launch = Callable[..., Any]

APP = ("-m", "runner.apps.jacobi3d")
KEYS = {
    "app", "variant", "input", "size", "iterations", "grid", "ranks", "block", "solver_s",
    "verified", "residual", "expected", "mflops", "phases", "startup_s",
    "processes", "workers", "threads", "local_grid",
    "compute_s", "mpi_s", "buffering_s", "waiting_s",
    "other_s", "end_s", "compute_cpu_s", "messages", "bytes", "rank_imbalance", "odf",
}  # fmt: skip


SERIES = """
import json, sys
from runner.apps.common_mpi import run
from runner.apps.jacobi3d.application import main
series = json.loads(sys.argv[1])
run("series", "single", lambda comm: max(main(comm, options, 0.0) for options in series))
"""


@pytest.mark.parametrize(
    ("ranks", "series"),
    [
        pytest.param(1, ["9x7x5", "1x1x6"], marks=pytest.mark.slow),
        (2, ["17x16x15 --grid 2x1x1 --block 3", "9x8x7 --grid 1x2x1", "4x4x4 --block 1"]),
        pytest.param(
            *(3, ["7x11x8 --grid 3x1x1", "20x13x14 --grid 1x3x1 --block 1", "1x1x7"]),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(4, ["9x10x11 --grid 2x2x1", "4x4x17 --grid 1x2x2 --block 5", "13x6x5 --grid 2x1x2"]),
            marks=pytest.mark.slow,
        ),
        (8, ["5x7x9 --grid 2x2x2", "17x3x2 --grid 8x1x1", "32x16x8"]),
    ],
)
def test_every_bit_as_in_a_serial_run(launch: Launch, ranks: int, series: list[str]) -> None:
    common = "--iterations 25 --verify full --size "
    named = ["--input tiny", "--input tiny --verify full"]
    options = [line.split() for line in [*(common + case for case in series), *named]]
    done = launch(ranks, "-c", SERIES, json.dumps(options))
    assert done.code == 0, done.err
    results = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
    assert len(results) == len(options)
    assert all(r["verified"] is True and r["ranks"] == ranks for r in results)
    for r in results[-2:]:
        assert r["residual"] == pytest.approx(r["expected"], rel=1e-12)


def test_result_of_a_run(launch: Launch) -> None:
    done = launch(2, *APP, "--input", "tiny", "--repetitions", "3")
    assert done.code == 0, done.err
    result = done.result
    assert set(result) == KEYS | {"repetitions_s"}
    assert result["verified"] is True
    assert sorted(result["repetitions_s"])[1] == result["solver_s"] > 0
    assert set(result["phases"]) == {"compute", "mpi", "buffering", "waiting"}
    assert all(0 <= p["mean"] <= p["max"] for p in result["phases"].values())
    assert result["mflops"] == pytest.approx(15 * 16**3 * 20 / result["solver_s"] / 1e6)


def test_size_given_by_hand_is_unchecked(launch: Launch) -> None:
    done = launch(2, *APP, "--size", "10", "--iterations", "5")
    assert done.code == 0
    assert done.result["verified"] is None
    assert done.result["expected"] is None
    assert "unchecked" in done.out
    assert set(done.result) == KEYS


BROKEN = {
    "ghosts never exchanged": """
        from runner.apps.jacobi3d.halo import Halo
        Halo.exchange = lambda self, meter: None
    """,
    "one cell of one rank off by the last bit": """
        import numpy as np
        from runner.apps.jacobi3d.variant_mpi import BasicMPI
        solve = BasicMPI.solve
        def wrong(self, iterations):
            done = solve(self, iterations)
            if self._comm.rank == 1:
                cells = self._block.interior
                cells[3, 2, 1] = np.nextafter(cells[3, 2, 1], 2.0)
            return done
        BasicMPI.solve = wrong
    """,
    "one rank raises": """
        from runner.apps.jacobi3d.variant_mpi import BasicMPI
        solve = BasicMPI.solve
        def wrong(self, iterations):
            if self._comm.rank == 1:
                raise RuntimeError("rank 1 is broken")
            return solve(self, iterations)
        BasicMPI.solve = wrong
    """,
    "one rank cannot compile": """
        from runner.apps.jacobi3d import block
        from runner.errors import RunnerError
        load = block.load
        def wrong(module):
            from mpi4py import MPI
            if MPI.COMM_WORLD.rank == 1:
                raise RunnerError("rank 1 has no kernels", code="test.error")
            return load(module)
        block.load = wrong
    """,
}


def start_broken(launch: Launch, what: str, *options: str) -> Any:
    code = textwrap.dedent(BROKEN[what]) + textwrap.dedent(
        """
        import sys
        from time import perf_counter
        from runner.apps.common_mpi import run
        from runner.apps.jacobi3d.application import main
        run("jacobi3d", "single", lambda comm: main(comm, sys.argv[1:], perf_counter()))
        """
    )
    return launch(2, "-c", code, "--input", "tiny", *options)


def test_missing_exchange_fails_the_residual(launch: Launch) -> None:
    done = start_broken(launch, "ghosts never exchanged")
    assert done.code == 1
    assert done.result["verified"] is False
    failed = next(line for line in done.out.splitlines() if "verification failed" in line)
    assert repr(done.result["residual"]) in failed
    assert repr(done.result["expected"]) in failed


def test_one_wrong_bit_fails_the_full_verification(launch: Launch) -> None:
    done = start_broken(launch, "one cell of one rank off by the last bit", "--verify", "full")
    assert done.code == 1
    assert done.result["verified"] is False
    # 2 ranks cut z: rank 1 begins at z = 8.
    assert "1 cells of rank 1 differ from the serial run, first at x=1 y=2 z=11" in done.out


def test_exception_on_one_rank_ends_all(launch: Launch) -> None:
    done = start_broken(launch, "one rank raises")
    assert done.code != 0
    assert "rank 1 is broken" in done.err
    assert "solver" not in done.out


def test_failure_of_one_rank_is_one_message(launch: Launch) -> None:
    done = start_broken(launch, "one rank cannot compile")
    assert done.code == 1, done.err
    assert done.err.count("jacobi3d: error: rank 1 has no kernels") == 1
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("ranks", "options", "words"),
    [
        (3, ["--grid", "2x2x1"], "has 4 parts, but the program runs on 3 ranks"),
        (2, ["--input", "nothing"], "--input nothing is unknown"),
    ],
)
def test_wrong_use_is_one_message_and_exit_code_2(
    launch: Launch, ranks: int, options: list[str], words: str
) -> None:
    done = launch(ranks, *APP, *options)
    assert done.code == 2
    assert done.err.count("jacobi3d: error:") == 1
    assert words in done.err
    assert "Traceback" not in done.err
    assert done.out == ""
