"""Whole programs: known counts, both ways of counting, and the same again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from autotune.space.parameter import COLLECTIVES
from runner.launch import Runner
from runner.mpi.library import Library
from runner.trace import COUNT_NAMES
from runner.trace.compute import feature_values
from runner.trace.run import Traced, run_counted
from runner.types import LaunchSpec
from tests.trace.conftest import TraceRun

pytestmark = pytest.mark.mpi
PING_PONG = str(Path(__file__).with_name("ping_pong.py"))
NAS = (sys.executable, "-m", "runner.nas")


def counts_of(found: Traced) -> dict[str, float]:
    values = feature_values(found.ranks, 2)
    return {name: values[name] for name in COUNT_NAMES}


@pytest.mark.parametrize("method", ["pmpi", "mpi4py"])
def test_ping_pong(traced: TraceRun, mpicc: str, method: str) -> None:
    found = traced(2, sys.executable, PING_PONG, "50", method=method)
    assert found.method == method
    for rank in found.ranks:
        assert rank.to == {1 - rank.rank: (50, 50 * 1024)}
        assert rank.p2p_sizes[11] == 50
        # Rank 1 of the world is rank 0 of the communicator, which sends blocking.
        assert rank.ops["send"].nonblocking == (50 if rank.rank == 0 else 0)
        assert rank.ops["wait"].calls == (100 if rank.rank == 0 else 0)
        assert rank.ops["recv"].calls == 50
        reduced, told = rank.ops["allreduce"], rank.ops["bcast"]
        assert (reduced.calls, reduced.bytes, reduced.comm_sizes) == (1, 32, 2)
        assert (told.calls, told.bytes, told.comm_sizes) == (1, 16, 2)
        assert rank.ops["barrier"].calls == 1


def test_cg_sends_what_its_specification_implies(traced: TraceRun, mpicc: str) -> None:
    # tests/nas/test_communication.py counts the 15 timed outer iterations; one more warms up.
    found = traced(2, *NAS, "cg", "--class", "S")
    scalars, pairs, vectors = 16 * (2 * 25 + 2), 16, 16 * 26 * 2
    for rank in found.ranks:
        assert rank.messages == scalars + pairs + vectors
        assert rank.ops["send"].bytes == 8 * scalars + 16 * pairs + 700 * 8 * vectors
        assert set(rank.to) == {0, 1}


def test_is_exchanges_its_keys(traced: TraceRun, mpicc: str) -> None:
    first, second = (traced(2, *NAS, "is", "--class", "S") for _ in range(2))
    for rank in first.ranks:
        # 10 timed iterations and one to warm up, each an Alltoall and an Alltoallv.
        assert rank.ops["alltoall"].calls == 22
        assert rank.ops["alltoall"].bytes == 11 * (2 * 4 + 65536 // 2 * 4)
    assert counts_of(first) == counts_of(second)


def test_the_solvers_call_these_collectives_in_their_timed_part(
    runner: Runner, library: Library, mpicc: str
) -> None:
    def called(*program: str, metric: str | None) -> set[str]:
        launch = LaunchSpec(
            (sys.executable, "-m", *program), 2, oversubscribe=True, timeout_s=60, metric=metric,
            placement={"bind_to": "none"},
        )  # fmt: skip
        counted = run_counted(runner, launch)
        assert counted.record.valid
        assert counted.calls
        assert counted.commutes
        return {n for n, count in counted.calls.items() if count} & {*COLLECTIVES, "barrier"}

    jacobi = ("runner.apps.jacobi3d", "--input", "tiny")
    # Its results are collected by allgather, after a barrier that begins the timed part.
    assert called(*jacobi, metric=None) >= {"allgather", "barrier"}
    assert called(*jacobi, metric="json:solver_s") == set()
    kernel = ("runner.nas", "is", "--class", "S")
    assert called(*kernel, metric="json:solver_s") == {"allreduce", "alltoall"}


def test_jacobi3d_sends_what_it_says(traced: TraceRun, mpicc: str) -> None:
    program = (sys.executable, "-m", "runner.apps.jacobi3d", "--input", "tiny")
    found = traced(2, *program)
    faces = found.record.extra["messages"] // 2
    face_bytes = found.record.extra["bytes"] // found.record.extra["messages"]
    for rank in found.ranks:
        # One exchange more than the program counts, outside of its timed part.
        assert rank.p2p_sizes[face_bytes.bit_length()] == faces + 1
        assert set(rank.to) == {1 - rank.rank}
