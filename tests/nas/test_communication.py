"""Class S on 1, 2 and 4 ranks: right results, and the messages that the specification implies."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import Any

import pytest

from tests.apps.conftest import Launch

pytestmark = pytest.mark.mpi

KERNELS = ("is", "ep", "cg", "mg")
RANKS = (1, pytest.param(2, marks=pytest.mark.slow), 4)
DOUBLE = 8
INT = 4

Messages = list[Counter[tuple[str, int, int]]]
"""For each rank: how often it sent (operation, peer or -1, bytes)."""


class Run:
    """What tests.nas.counting printed: one launch for all kernels."""

    def __init__(self, out: str) -> None:
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        self.lines: dict[str, Any] = {line["kernel"]: line for line in lines}

    def messages(self, kernel: str) -> Messages:
        return [
            Counter({(op, peer, size): count for op, peer, size, count in rank})
            for rank in self.lines[kernel]["sent"]
        ]


@pytest.fixture(scope="module")
def runs() -> dict[int, Run]:
    """Filled by the first test that needs a number of ranks."""
    return {}


@pytest.fixture
def counted(launch: Launch, runs: dict[int, Run]) -> Any:
    def get(ranks: int) -> Run:
        if ranks not in runs:
            done = launch(ranks, "-m", "tests.nas.counting", "S", *KERNELS)
            assert done.code == 0, done.err
            runs[ranks] = Run(done.out)
        return runs[ranks]

    return get


@pytest.mark.parametrize("ranks", RANKS)
def test_every_kernel_verifies(counted: Any, ranks: int) -> None:
    lines = counted(ranks).lines
    assert set(lines) == set(KERNELS)
    assert all(line["right"] and line["checks"] for line in lines.values())


@pytest.mark.parametrize("ranks", RANKS)
def test_ep_sends_nothing_but_three_sums(counted: Any, ranks: int) -> None:
    expected = {("Allreduce", -1, DOUBLE): 2, ("Allreduce", -1, 10 * DOUBLE): 1}
    assert counted(ranks).messages("ep") == [expected] * ranks


@pytest.mark.parametrize("ranks", RANKS)
def test_is_exchanges_all_keys_each_iteration(counted: Any, ranks: int) -> None:
    for sent in counted(ranks).messages("is"):
        # 512 bucket sizes and 5 tested keys; one count for each rank; all keys of the rank.
        assert sent == {
            ("Allreduce", -1, (512 + 5) * INT): 10,
            ("Alltoall", -1, ranks * INT): 10,
            ("Alltoallv", -1, 65536 // ranks * INT): 10,
        }


@pytest.mark.parametrize("ranks", RANKS)
def test_cg_sums_along_rows_and_transposes(counted: Any, ranks: int) -> None:
    outer, inner = 15, 25
    columns = {1: 1, 2: 2, 4: 2}[ranks]
    steps = columns.bit_length() - 1
    # Two dot products an inner iteration; before them r.r, after them the residual and one pair.
    scalars, pairs = outer * (2 * inner + 2) * steps, outer * steps
    products = outer * (inner + 1)
    for rank, sent in enumerate(counted(ranks).messages("cg")):
        by_size: Counter[int] = Counter()
        for (operation, _, size), count in sent.items():
            assert operation == "Send"
            by_size[size] += count
        # 1400 rows in rows or columns of 2: a vector message is always 700 doubles.
        vectors = {700 * DOUBLE: products * (steps + 1)} if steps else {}
        few = {DOUBLE: scalars, 2 * DOUBLE: pairs} if steps else {}
        assert by_size == {**few, **vectors}
        transpose = {2: [0, 1], 4: [0, 2, 1, 3]}.get(ranks, [0])[rank]
        peers = {peer for _, peer, _ in sent}
        assert peers == ({rank ^ 1, transpose} if steps else set())


@cache
def mg_messages(ranks: int, rank: int) -> Counter[tuple[str, int, int]]:
    """Messages of MG, class S (levels of 2 to 32 points, 4 cycles), where no rank runs dry."""
    grid = {2: (1, 1, 2), 4: (1, 2, 2)}[ranks]
    place = (rank % grid[0], rank // grid[0] % grid[1], rank // (grid[0] * grid[1]))
    strides = (1, grid[0], grid[0] * grid[1])
    sent: Counter[tuple[str, int, int]] = Counter({("Allreduce", -1, DOUBLE): 4})
    for points in (2, 4, 8, 16, 32):
        # Per cycle: restriction (not to the finest), residual (not on the coarsest), smoother; on
        # the finest also the residual after the cycle, and once the one before all cycles.
        exchanges = {2: 4 * 2, 32: 4 * 3 + 1}.get(points, 4 * 3)
        x, y, z = (points // parts for parts in grid)
        faces = (y * z, (x + 2) * z, (x + 2) * (y + 2))
        for axis, face in enumerate(faces):
            for step in (-1, 1):
                there = (place[axis] + step) % grid[axis]
                peer = rank + (there - place[axis]) * strides[axis]
                sent["Send", peer, face * DOUBLE] += exchanges
    return sent


@pytest.mark.parametrize("ranks", RANKS[1:])
def test_mg_exchanges_six_faces_on_every_level(counted: Any, ranks: int) -> None:
    for rank, sent in enumerate(counted(ranks).messages("mg")):
        assert sent == mg_messages(ranks, rank)
        assert sum(n for (operation, *_), n in sent.items() if operation == "Send") == 57 * 6


def test_mg_alone_copies_its_faces(counted: Any) -> None:
    assert counted(1).messages("mg") == [{("Allreduce", -1, DOUBLE): 4}]


@pytest.mark.slow
def test_mg_with_more_ranks_than_coarse_points(launch: Launch) -> None:
    done = launch(16, "-m", "tests.nas.counting", "S", "mg")
    assert done.code == 0, done.err
    run = Run(done.out)
    assert run.lines["mg"]["right"]
    # Fewer exchanges on dead ranks, none on the coarsest level for half of them.
    totals = {sum(sent.values()) for sent in run.messages("mg")}
    assert len(totals) > 1
