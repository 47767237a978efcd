"""The profiling library against a C program whose calls are known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runner.mpi.library import Library
from runner.trace.compute import feature_values
from runner.trace.counts import RankCounts
from tests.trace.conftest import TraceRun

pytestmark = pytest.mark.mpi
RANKS = 4
SOURCE = Path(__file__).with_name("operations.c")


@pytest.fixture(scope="module")
def program(compiled: Callable[[str, str], str]) -> str:
    return compiled("operations", SOURCE.read_text())


@pytest.fixture(scope="module")
def kept() -> list[RankCounts]:
    """The counts of the one run that the tests of this module look at."""
    return []


@pytest.fixture
def counts(kept: list[RankCounts], program: str, traced: TraceRun) -> list[RankCounts]:
    if not kept:
        kept += traced(RANKS, program).ranks
    return kept


def test_messages_are_counted_once_on_the_sender(counts: list[RankCounts]) -> None:
    for rank in counts:
        # The other of the two in the split communicator is two ranks away; 4 bytes, 3 times.
        # The thread's message in COMM_SELF goes to the rank itself, wherever it is in the world.
        following, opposite = (rank.rank + 1) % RANKS, (rank.rank + 2) % RANKS
        sent = 4 + 2 * 8 + 0 + 3 * 16 + 20
        assert rank.to == {following: (8, sent), opposite: (3, 12), rank.rank: (1, 4)}
        assert rank.outside == 0
        assert rank.ops["send"].bytes == sent + 12 + 4


def test_message_sizes_fall_into_powers_of_two(counts: list[RankCounts]) -> None:
    expected = {0: 1, 3: 1 + 3 + 1, 4: 2, 5: 3 + 1}
    for rank in counts:
        assert {k: n for k, n in enumerate(rank.p2p_sizes) if n} == expected


def test_nonblocking_and_persistent_messages_are_told_apart(counts: list[RankCounts]) -> None:
    assert [rank.ops["send"].nonblocking for rank in counts] == [2 + 3] * RANKS


@pytest.mark.parametrize(
    ("name", "calls", "nonblocking", "size", "comm_sizes"),
    [
        ("barrier", 2, 1, 0, 8),
        ("bcast", 5, 1, 32 + 16 + 3 * 4, 4 + 4 + 3 * 2),
        ("reduce", 1, 0, 24, 4),
        ("allgather", 1, 0, 16, 4),
        ("allreduce", 3, 2, 32 + 2 * 8, 12),
        ("alltoall", 2, 0, 4 * 8 + 4 * 8, 8),
        ("reduce_scatter", 2, 0, 10 * 4 + 4 * 2 * 8, 8),
        ("scan", 2, 0, 8 + 16, 8),
        ("neighbor", 1, 0, 16, 4),
        ("rma", 1, 0, 4, 0),
    ],
)
def test_collectives(
    counts: list[RankCounts], name: str, calls: int, nonblocking: int, size: int, comm_sizes: int
) -> None:
    for rank in counts:
        op = rank.ops[name]
        found = (op.calls, op.nonblocking, op.bytes, op.comm_sizes)
        assert found == (calls, nonblocking, size, comm_sizes)


def test_calls_of_the_timed_parts_are_counted_apart(counts: list[RankCounts]) -> None:
    for rank in counts:
        timed = {name: count for name, count in rank.timed_calls.items() if count}
        # The calls that make and start a persistent request count as others.
        assert {n: timed.get(n, 0) for n in rank.ops if n not in ("send", "other")} == {
            **{name: 0 for name in rank.ops if name not in ("send", "other")},
            **{"bcast": 2, "allreduce": 2, "wait": 3},
        }


@pytest.mark.parametrize(("name", "own"), [("scatter", 16), ("gather", 8)])
def test_each_rank_counts_its_own_block(counts: list[RankCounts], name: str, own: int) -> None:
    for rank in counts:
        assert rank.ops[name].calls == 2
        assert rank.ops[name].bytes == own + 8 * (rank.rank + 1)


def test_time_is_inside_the_run(counts: list[RankCounts]) -> None:
    for rank in counts:
        assert 0 < sum(op.ns for op in rank.ops.values()) < rank.wall_ns
        assert rank.ops["wait"].calls == 2 + 2 + 3 + 2 + 2


def test_features_of_the_run(counts: list[RankCounts]) -> None:
    values = feature_values(counts, cores=2)
    # 12 messages a rank; the last to the first is 3 ranks away.
    assert values["p2p_messages"] == 12
    assert values["p2p_receivers"] == 3
    assert values["p2p_distance"] == pytest.approx((8 * (1 + 1 + 1 + 3) + 3 * 4 * 2) / 48)
    assert values["nonblocking_p2p"] == pytest.approx(5 / 12)
    assert values["one_to_n_comm_size"] == pytest.approx((14 + 8) / 7)


def test_counts_are_the_same_in_every_run(
    counts: list[RankCounts], program: str, traced: TraceRun
) -> None:
    for first, second in zip(counts, traced(RANKS, program).ranks, strict=True):
        assert first.to == second.to
        for name, op in first.ops.items():
            again = second.ops[name]
            assert (op.calls, op.bytes, op.comm_sizes) == (
                again.calls,
                again.bytes,
                again.comm_sizes,
            )


FORTRAN = """
program ring
  use mpi
  implicit none
  integer :: rank, ierr, other, status(MPI_STATUS_SIZE)
  double precision :: field(10), total(10)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  other = 1 - rank
  field = 1
  call MPI_Sendrecv(field, 10, MPI_DOUBLE_PRECISION, other, 0, total, 10, &
                    MPI_DOUBLE_PRECISION, other, 0, MPI_COMM_WORLD, status, ierr)
  call MPI_Allreduce(field, total, 10, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_Finalize(ierr)
end program
"""


def test_fortran(library: Library, traced: TraceRun, tmp_path: Path) -> None:
    import subprocess

    compiler = Path(library.bin) / "mpifort"
    if not compiler.exists():
        pytest.skip("this MPI has no Fortran (no mpifort)")
    (tmp_path / "ring.f90").write_text(FORTRAN)
    subprocess.run([compiler, "-o", "ring", "ring.f90"], cwd=tmp_path, check=True, timeout=60)
    for rank in traced(2, str(tmp_path / "ring")).ranks:
        assert rank.to == {1 - rank.rank: (1, 80)}
        assert rank.ops["allreduce"].bytes == 80
