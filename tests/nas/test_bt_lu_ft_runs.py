"""FT, LU, BT and SP in class S under the real mpirun: right results, and the messages that the
specification implies."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.apps.conftest import Launch

pytestmark = pytest.mark.mpi

DOUBLE = 8
COMPLEX = 16
CASES = {
    1: ("ft", "lu", "bt", "sp"),
    2: ("ft", "lu", "ft expects other sums", "ft turns nothing", "lu has no ghosts"),
    4: (
        *("ft", "lu", "bt", "sp", "ft 2x2", "lu uneven", "bt uneven", "sp uneven"),
        "bt expects other norms",
    ),
}
SLOW = {4: ("ft 4x1", "sp has no ghosts", "sp is whole")}
"""All cases of one number of ranks are one launch; the slow ones are another."""


def cases(least: int, most: int) -> list[Any]:
    """All cases whose names have so many letters, with their ranks."""
    return [
        pytest.param(ranks, case, marks=marks)
        for group, marks in ((CASES, []), (SLOW, [pytest.mark.slow]))
        for ranks, names in group.items()
        for case in names
        if least <= len(case) <= most
    ]


@pytest.fixture(scope="module")
def runs() -> dict[tuple[str, ...], dict[str, Any]]:
    """Filled by the first test that needs a launch."""
    return {}


@pytest.fixture
def done(launch: Launch, runs: dict[tuple[str, ...], dict[str, Any]]) -> Any:
    def get(ranks: int, case: str) -> Any:
        names = next(every[ranks] for every in (CASES, SLOW) if case in every.get(ranks, ()))
        if names not in runs:
            finished = launch(ranks, "-m", "tests.nas.bt_cases", *names)
            assert finished.code == 0, finished.err
            lines = [json.loads(line) for line in finished.out.splitlines()]
            runs[names] = {line["case"]: line for line in lines}
        return runs[names][case]

    return get


def sent(result: Any) -> list[Counter[tuple[str, int, int]]]:
    """For each rank: how often it sent (operation, peer or -1, bytes)."""
    return [
        Counter({(op, peer, size): count for op, peer, size, count in rank})
        for rank in result["sent"]
    ]


@pytest.mark.parametrize(("ranks", "case"), cases(2, 6))
def test_class_s_verifies(done: Any, ranks: int, case: str) -> None:
    result = done(ranks, case)
    assert result["right"] is True
    assert result["checks"] == {"ft": 12, "lu": 11, "bt": 10, "sp": 10}[case.split()[0]]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ft_turns_the_grid_over_once_per_transform(done: Any, ranks: int) -> None:
    expected = Counter({("Reduce", -1, COMPLEX): 6})
    if ranks > 1:
        expected["Alltoall", -1, 64**3 * COMPLEX // ranks] = 7
    assert sent(done(ranks, "ft")) == [expected] * ranks


def test_ft_cut_along_two_axes_turns_it_over_twice(done: Any) -> None:
    expected = {("Reduce", -1, COMPLEX): 6, ("Alltoall", -1, 64**3 * COMPLEX // 4): 14}
    assert sent(done(4, "ft 2x2")) == [expected] * 4


@pytest.mark.parametrize(("ranks", "inner", "across"), [(2, 10, 12), (4, 5, 6)])
def test_lu_sends_a_line_per_plane_and_two_layers_per_step(
    done: Any, ranks: int, inner: int, across: int
) -> None:
    for rank, messages in enumerate(sent(done(ranks, "lu"))):
        expected = Counter({("Allreduce", -1, 5 * DOUBLE): 2})
        for peer in [rank ^ bit for bit in (1, 2) if bit < ranks]:
            # One of the two sweeps goes towards this neighbour: 10 inner planes in 50 steps.
            expected["Send", peer, 5 * inner * DOUBLE] = 500
            expected["Send", peer, 2 * 5 * across * 12 * DOUBLE] = 50
        assert messages == expected


@pytest.mark.parametrize(
    ("kernel", "steps", "down", "back"),
    # BT always sends the largest layer of a cell: 5x5 matrices and vectors, then vectors.  SP sends
    # inner points of two layers: two coefficients of three systems and vectors, then vectors.
    [("bt", 60, 7 * 7 * 30, 7 * 7 * 5), ("sp", 100, 5 * 5 * 22, 5 * 5 * 10)],
)
def test_bt_and_sp_send_six_faces_and_pass_a_layer_there_and_back(
    done: Any, kernel: str, steps: int, down: int, back: int
) -> None:
    for rank, messages in enumerate(sent(done(4, kernel))):
        expected: Counter[tuple[str, int, int]] = Counter()
        for peer in (rank ^ 1, rank ^ 2, rank ^ 3):
            # On 2x2 ranks the neighbours on both sides are the same.
            expected["Isend", peer, 2 * 6 * 6 * 5 * DOUBLE] = 2 * steps
            expected["Isend", peer, down * DOUBLE] = steps
            expected["Isend", peer, back * DOUBLE] = steps
        assert messages == expected


@pytest.mark.parametrize("kernel", ["bt", "sp"])
def test_one_rank_sends_nothing(done: Any, kernel: str) -> None:
    assert sent(done(1, kernel)) == [Counter()]


@pytest.mark.parametrize("kernel", ["lu", "bt", "sp"])
def test_uneven_parts_give_what_one_rank_gives(done: Any, kernel: str) -> None:
    result = done(4, f"{kernel} uneven")
    assert result["together"] == pytest.approx(result["alone"], rel=1e-10)
    assert all(value > 0 for value in result["alone"])


@pytest.mark.parametrize(("ranks", "case"), cases(10, 99))
def test_a_wrong_result_fails(done: Any, ranks: int, case: str) -> None:
    result = done(ranks, case)
    whole = case.endswith("whole")
    assert result["code"] == (0 if whole else 1)
    assert ("VERIFICATION FAILED" in result["out"]) is not whole
