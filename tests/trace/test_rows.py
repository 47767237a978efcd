"""The rows of programs whose calls are known: sums, kinds, nodes, and both ways of counting."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.trace.counts import RankCounts, RowKind
from runner.trace.profile import profile_of
from runner.trace.run import Method, TracedRun
from tests.trace.conftest import TraceRun

pytestmark = pytest.mark.mpi
RANKS = 4
OPERATIONS_C = Path(__file__).with_name("operations.c")
PING_PONG = str(Path(__file__).with_name("ping_pong.py"))

Sums = dict[RowKind, tuple[int, int]]

NAMED_NODES = """
#include <stdio.h>
#include <stdlib.h>

/* The first RANKS_PER_NODE ranks are on node-0, the next ones on node-1. */
int PMPI_Get_processor_name(char *name, int *length)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!rank)
        rank = getenv("PMI_RANK");
    *length = sprintf(name, "node-%d", rank ? atoi(rank) / RANKS_PER_NODE : 0);
    return 0;
}

int MPI_Get_processor_name(char *name, int *length)
{
    return PMPI_Get_processor_name(name, length);
}
"""


@pytest.fixture(scope="module")
def operations(compiled: Callable[[str, str], str]) -> str:
    return compiled("operations", OPERATIONS_C.read_text())


@pytest.fixture(scope="module")
def kept() -> list[RankCounts]:
    """The counts of the one run on one node that several tests look at."""
    return []


@pytest.fixture
def counts(kept: list[RankCounts], operations: str, traced: TraceRun) -> list[RankCounts]:
    if not kept:
        kept += traced(RANKS, operations).ranks
    return kept


@pytest.fixture
def named_nodes(
    compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[int], None]:
    """``named_nodes(n)``: from now on, n ranks each see a name of a node of their own."""

    def preload(ranks: int) -> None:
        (tmp_path / "nodes.c").write_text(NAMED_NODES)
        library = tmp_path / "nodes.so"
        command = [compiler, "-shared", "-fPIC", f"-DRANKS_PER_NODE={ranks}", "-o", str(library)]
        subprocess.run([*command, "nodes.c"], cwd=tmp_path, check=True, timeout=60)
        others = os.environ.get("LD_PRELOAD")
        monkeypatch.setenv("LD_PRELOAD", f"{library}:{others}" if others else str(library))

    return preload


def sums(rank: RankCounts, *operations: str) -> Sums:
    return {
        kind: (row.calls, row.bytes)
        for kind, row in rank.rows.items()
        if kind.operation in operations
    }


def test_rows_add_up_to_the_sums_of_their_operation(counts: list[RankCounts]) -> None:
    for rank in counts:
        for name, op in rank.ops.items():
            rows = {kind: row for kind, row in rank.rows.items() if kind.operation == name}
            assert sum(row.ns for row in rows.values()) == op.ns, name
            if name != "wait":
                assert sum(row.bytes for row in rows.values()) == op.bytes, name
            if name != "send":
                assert sum(row.calls for row in rows.values()) == op.calls, name
            if name != "recv":
                assert op.nonblocking == sum(r.calls for k, r in rows.items() if k.nonblocking)
            assert op.comm_sizes == sum(k.comm_size * row.calls for k, row in rows.items()), name
        assert sum(calls for calls, _ in sums(rank, "send").values()) == rank.messages


def test_messages_and_waits(counts: list[RankCounts]) -> None:
    for rank in counts:
        assert sums(rank, "send", "recv", "wait") == {
            # One Ssend of 0 bytes; the message to nobody gives its time only.
            RowKind("send", False, 0, 0, False): (1, 0),
            # Send, 3 in the split communicators, and 1 of the thread.
            RowKind("send", False, 3, 0, False): (5, 20),
            RowKind("send", False, 5, 0, False): (1, 20),
            RowKind("send", True, 0, 0, False): (0, 0),
            RowKind("send", True, 4, 0, False): (2, 16),
            RowKind("send", True, 5, 0, False): (3, 48),
            RowKind("recv", False, 0, 0, False): (2, 0),
            RowKind("recv", True, 0, 0, False): (2, 0),
            # 11 calls; three of them wait for 2 requests.
            RowKind("wait", False, 0, 0, False): (11, 14),
        }
        # A persistent message takes its time when it is started, which is in a row without calls.
        assert rank.rows[RowKind("send", True, 5, 0, False)].ns == 0
        assert rank.rows[RowKind("send", True, 0, 0, False)].ns > 0


def test_collectives_by_size_and_communicator(counts: list[RankCounts]) -> None:
    for rank in counts:
        assert sums(rank, "barrier", "bcast", "allreduce", "scan", "rma") == {
            RowKind("barrier", False, 0, 4, False): (1, 0),
            RowKind("barrier", True, 0, 4, False): (1, 0),
            RowKind("bcast", False, 3, 2, False): (3, 12),
            RowKind("bcast", False, 6, 4, False): (1, 32),
            RowKind("bcast", True, 5, 4, False): (1, 16),
            RowKind("allreduce", False, 6, 4, False): (1, 32),
            RowKind("allreduce", True, 4, 4, False): (2, 16),
            RowKind("scan", False, 4, 4, False): (1, 8),
            RowKind("scan", False, 5, 4, False): (1, 16),
            RowKind("rma", False, 0, 0, False): (1, 4),
        }
    assert {kind for kind in counts[3].rows if kind.operation == "scatter"} == {
        RowKind("scatter", False, 5, 4, False),
        RowKind("scatter", False, 6, 4, False),
    }


def test_partners_on_other_nodes(
    operations: str, traced: TraceRun, named_nodes: Callable[[int], None]
) -> None:
    named_nodes(2)
    ranks = traced(RANKS, operations).ranks
    assert [rank.host for rank in ranks] == ["node-0", "node-0", "node-1", "node-1"]
    for rank in ranks:
        # The next rank of 1 and of 3 is on the other node; both split communicators span both.
        next_is_far = rank.rank % 2 == 1
        assert RowKind("send", True, 4, 0, next_is_far) in rank.rows
        assert RowKind("send", True, 4, 0, not next_is_far) not in rank.rows
        small = {far: rank.rows[RowKind("send", False, 3, 0, far)].calls for far in (False, True)}
        assert small == ({True: 4, False: 1} if next_is_far else {True: 3, False: 2})
        spanning = {kind.far for kind in rank.rows if kind.comm_size}
        assert spanning == {True}


BETWEEN = """
#include <mpi.h>

/* Ranks 0 and 1 face ranks 2 and 3; rank 0 sends to rank 3. */
int main(int count, char **words)
{
    int rank, value = 0;
    MPI_Comm half, both;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < 2 ? 2 : 0, 0, &both);
    MPI_Barrier(half);
    MPI_Barrier(both);
    if (rank == 0)
        MPI_Send(&value, 1, MPI_INT, 1, 0, both);
    if (rank == 3)
        MPI_Recv(&value, 1, MPI_INT, 0, 0, both, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
"""


def test_an_intercommunicator_spans_the_nodes_of_both_its_groups(
    traced: TraceRun, compiled: Callable[[str, str], str], named_nodes: Callable[[int], None]
) -> None:
    # Only rank 3 is on the other node. For rank 2 that is a rank of its own group.
    named_nodes(3)
    ranks = traced(RANKS, compiled("between", BETWEEN)).ranks
    for rank in ranks:
        barriers = [kind.far for kind in rank.rows if kind.operation == "barrier"]
        assert sorted(barriers) == ([False, True] if rank.rank < 2 else [True])
    assert sums(ranks[0], "send") == {RowKind("send", False, 3, 0, True): (1, 4)}
    assert ranks[0].to == {3: (1, 4)}


@pytest.fixture(scope="module")
def kept_runs() -> dict[tuple[Method, int], TracedRun]:
    return {}


@pytest.fixture
def ping_pong(
    kept_runs: dict[tuple[Method, int], TracedRun],
    traced: TraceRun,
    mpicc: str,
    named_nodes: Callable[[int], None],
) -> Callable[..., TracedRun]:
    """``ping_pong(method, nodes)``: 50 round trips between two ranks, run once for all tests."""

    def run(method: Method, nodes: int = 2) -> TracedRun:
        if (method, nodes) not in kept_runs:
            named_nodes(2 // nodes)
            words = (sys.executable, PING_PONG, "50")
            kept_runs[method, nodes] = traced(2, *words, method=method)
        return kept_runs[method, nodes]

    return run


@pytest.mark.parametrize("method", ["pmpi", "mpi4py"])
def test_ping_pong(ping_pong: Callable[[Method], TracedRun], method: Method) -> None:
    found = ping_pong(method)
    assert found.method == method
    for rank in found.ranks:
        for name, op in rank.ops.items():
            assert op.ns == sum(r.ns for kind, r in rank.rows.items() if kind.operation == name)
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


@pytest.mark.parametrize("nodes", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_both_ways_of_counting_agree(ping_pong: Callable[..., TracedRun], nodes: int) -> None:
    methods: tuple[Method, Method] = ("pmpi", "mpi4py")
    compared = ("send", "recv", "wait", "barrier", "bcast", "allreduce")
    compiled, python = (
        [(rank.host, sums(rank, *compared)) for rank in ping_pong(method, nodes).ranks]
        for method in methods
    )
    assert compiled == python
    far = nodes == 2
    assert compiled[1] == (
        f"node-{nodes - 1}",
        {
            RowKind("send", False, 11, 0, far): (50, 50 * 1024),
            RowKind("recv", False, 0, 0, False): (50, 0),
            RowKind("barrier", False, 0, 2, far): (1, 0),
            RowKind("bcast", False, 5, 2, far): (1, 16),
            RowKind("allreduce", False, 6, 2, far): (1, 32),
        },
    )
    assert compiled[0][1][RowKind("wait", False, 0, 0, False)] == (100, 100)


LATE = """
import time
from mpi4py import MPI
world = MPI.COMM_WORLD
world.Barrier()
time.sleep(0.4 * world.Get_rank())
world.Barrier()
"""
LATE_C = """
#include <mpi.h>
#include <unistd.h>
int main(int count, char **words)
{
    int rank;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(400000 * rank);
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Finalize();
}
"""


@pytest.mark.parametrize("method", ["pmpi", pytest.param("mpi4py", marks=pytest.mark.slow)])
def test_waiting_for_a_late_rank_is_told_from_the_call(
    traced: TraceRun, compiled: Callable[[str, str], str], method: str
) -> None:
    python = (sys.executable, "-c", LATE)
    program = (compiled("late", LATE_C),) if method == "pmpi" else python
    profile = profile_of(traced(2, *program, method=method).ranks)
    (barrier,) = (row for row in profile.rows if row.operation == "barrier")
    assert (barrier.calls, barrier.comm_size) == (2, 2)
    # Rank 0 waits for 0.4 s, rank 1 does not: 0.2 s in the mean.
    assert profile.waiting["barrier"] == pytest.approx(0.2, abs=0.1)
    assert profile.waiting["barrier"] <= profile.seconds("barrier")
    assert barrier.least_seconds < 0.2


MANY = """
#include <mpi.h>

/* 6 calls of 13 sizes in 2 communicators, each 10 times, with and without blocking. */
int main(int count, char **words)
{
    static char block[1 << 12], all[1 << 13];
    MPI_Init(&count, &words);
    for (int round = 0; round < 260; round++) {
        int size = 1 << round % 13;
        MPI_Comm comm = round % 2 ? MPI_COMM_WORLD : MPI_COMM_SELF;
        MPI_Request request[6];
        MPI_Bcast(block, size, MPI_BYTE, 0, comm);
        MPI_Allreduce(block, all, size, MPI_BYTE, MPI_BOR, comm);
        MPI_Reduce(block, all, size, MPI_BYTE, MPI_BOR, 0, comm);
        MPI_Gather(block, size, MPI_BYTE, all, size, MPI_BYTE, 0, comm);
        MPI_Allgather(block, size, MPI_BYTE, all, size, MPI_BYTE, comm);
        MPI_Scan(block, all, size, MPI_BYTE, MPI_BOR, comm);
        MPI_Ibcast(block, size, MPI_BYTE, 0, comm, request);
        MPI_Waitall(1, request, MPI_STATUSES_IGNORE);
        MPI_Iallreduce(block, all, size, MPI_BYTE, MPI_BOR, comm, request);
        MPI_Waitall(1, request, MPI_STATUSES_IGNORE);
        MPI_Ireduce(block, all, size, MPI_BYTE, MPI_BOR, 0, comm, request);
        MPI_Waitall(1, request, MPI_STATUSES_IGNORE);
        MPI_Igather(block, size, MPI_BYTE, all, size, MPI_BYTE, 0, comm, request);
        MPI_Waitall(1, request, MPI_STATUSES_IGNORE);
        MPI_Iallgather(block, size, MPI_BYTE, all, size, MPI_BYTE, comm, request);
        MPI_Waitall(1, request, MPI_STATUSES_IGNORE);
        MPI_Iscan(block, all, size, MPI_BYTE, MPI_BOR, comm, request);
        MPI_Waitall(1, request, MPI_STATUSES_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
"""


def test_more_rows_than_the_first_table_has(
    traced: TraceRun, compiled: Callable[[str, str], str]
) -> None:
    names = ("bcast", "allreduce", "reduce", "gather", "allgather", "scan")
    for rank in traced(2, compiled("many", MANY)).ranks:
        assert sums(rank, *names) == {
            RowKind(name, nonblocking, at + 1, comm_size, False): (10, 10 << at)
            for name in names
            for nonblocking in (False, True)
            for at in range(13)
            for comm_size in (1, 2)
        }
        assert sums(rank, "wait") == {RowKind("wait", False, 0, 0, False): (6 * 260, 6 * 260)}
