"""Whole programs: known counts, both ways of counting, and the same again."""

from __future__ import annotations

import sys

import pytest

from autotune.space.parameter import COLLECTIVES
from runner.launch import Runner
from runner.trace.run import run_with_counts
from runner.trace.steps import steps_of
from runner.types import LaunchSpec
from tests.trace.conftest import TraceRun

pytestmark = pytest.mark.mpi
NAS = (sys.executable, "-m", "runner.programs.nas")
JACOBI = (sys.executable, "-m", "runner.programs.apps.jacobi3d", "--input", "tiny")


@pytest.mark.slow
def test_cg_sends_what_its_specification_implies(traced: TraceRun, mpicc: str) -> None:
    # tests/nas/test_communication.py counts the 15 timed outer iterations; one more warms up.
    found = traced(2, *NAS, "cg", "--class", "S")
    scalars, pairs, vectors = 16 * (2 * 25 + 2), 16, 16 * 26 * 2
    for rank in found.ranks:
        assert rank.messages == scalars + pairs + vectors
        assert rank.ops["send"].bytes == 8 * scalars + 16 * pairs + 700 * 8 * vectors
        assert set(rank.to) == {0, 1}


@pytest.mark.slow
def test_is_exchanges_its_keys(traced: TraceRun, mpicc: str) -> None:
    found = traced(2, *NAS, "is", "--class", "S")
    for rank in found.ranks:
        # 10 timed iterations and one to warm up, each an Alltoall and an Alltoallv.
        assert rank.ops["alltoall"].calls == 22
        assert rank.ops["alltoall"].bytes == 11 * (2 * 4 + 65536 // 2 * 4)


@pytest.mark.parametrize(
    ("program", "metric", "called"),
    [
        # Its results are collected by allgather, after a barrier that begins the timed part.
        pytest.param(JACOBI, None, {"allgather", "barrier"}, marks=pytest.mark.slow),
        pytest.param(JACOBI, "json:solver_s", set(), marks=pytest.mark.slow),
        ((*NAS, "is", "--class", "S"), "json:solver_s", {"allreduce", "alltoall"}),
    ],
)
def test_the_solvers_call_these_collectives_in_their_timed_part(
    runner: Runner, mpicc: str, program: tuple[str, ...], metric: str | None, called: set[str]
) -> None:
    launch = LaunchSpec(
        program, 2, oversubscribe=True, timeout_s=60, metric=metric,
        placement={"bind_to": "none"},
    )  # fmt: skip
    counted = run_with_counts(runner, launch)
    assert counted.record.valid
    assert counted.calls
    assert counted.commutes
    found = {n for n, count in counted.calls.items() if count} & {*COLLECTIVES, "barrier"}
    assert found == called if metric else found >= called


def test_jacobi3d_sends_what_it_says(traced: TraceRun, mpicc: str) -> None:
    found = traced(2, *JACOBI)
    faces = found.record.extra["messages"] // 2
    face_bytes = found.record.extra["bytes"] // found.record.extra["messages"]
    for rank in found.ranks:
        # One exchange more than the program counts, outside of its timed part.
        assert rank.p2p_sizes[face_bytes.bit_length()] == faces + 1
        assert set(rank.to) == {1 - rank.rank}
        assert rank.ops["allgather"].calls
        assert rank.ops["barrier"].calls
    steps = steps_of(found.ranks)
    assert steps is not None
    assert (steps.steps, steps.rounds) == (faces, faces)
