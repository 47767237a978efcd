"""Class S on 8, 9 and 16 ranks, more than a small machine has cores: right, and who sends to whom.

Slow: ranks that share a core wait for each other's time slices.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from runner.programs.nas.cfd_cells import partition
from tests.apps.conftest import Launch

pytestmark = [pytest.mark.mpi, pytest.mark.slow]
DOUBLE = 8
STEPS = {"bt": 60, "sp": 100}
SIZE = 12


def results(launch: Launch, ranks: int, *kernels: str) -> dict[str, Any]:
    done = launch(ranks, "-m", "tests.nas.counting", "S", *kernels)
    assert done.code == 0, done.err
    lines = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
    return {line["kernel"]: line for line in lines}


def test_kernels_of_powers_of_two_verify_on_8_ranks(launch: Launch) -> None:
    found = results(launch, 8, "is", "ep", "cg", "mg", "ft", "lu")
    assert {name: line["right"] for name, line in found.items()} == dict.fromkeys(
        ("is", "ep", "cg", "mg", "ft", "lu"), True
    )
    # LU on 4 by 2 ranks: neighbours are next along a column (of 4) or a row.
    peers = [{peer for _, peer, _, _ in rank if peer >= 0} for rank in found["lu"]["sent"]]
    assert sorted(map(len, peers)) == [2] * 4 + [3] * 4
    # CG on 2 rows of 4: two steps of a sum along the row, and the transpose.
    for rank, sent in enumerate(found["cg"]["sent"]):
        row = {peer for _, peer, _, _ in sent if peer // 4 == rank // 4}
        assert {rank ^ 1, rank ^ 2} <= row


@pytest.mark.parametrize("kernel", ["bt", "sp"])
@pytest.mark.parametrize("ranks", [9, 16])
def test_bt_and_sp_verify_and_send_to_six_partners(launch: Launch, ranks: int, kernel: str) -> None:
    side = math.isqrt(ranks)
    largest = SIZE // side + 1
    line = results(launch, ranks, kernel)[kernel]
    assert line["right"]
    for rank, sent in enumerate(line["sent"]):
        own = partition("bt", SIZE, ranks, rank)
        partners = {*own.successors, *own.predecessors}
        assert len(partners) == 6
        by_peer: Counter[int] = Counter()
        by_size: Counter[int] = Counter()
        for operation, peer, size, count in sent:
            assert operation == "Isend"
            by_peer[peer] += count
            by_size[size] += count
        # Each of the six takes one face, and one of the two ways of a sweep.
        assert by_peer == dict.fromkeys(partners, STEPS[kernel] * side)
        # Two layers of all cells but the one at the wall.
        face = (side - 1) * 2 * (SIZE // side) ** 2 * 5 * DOUBLE
        assert by_size[face] == 6 * STEPS[kernel]
        if kernel == "bt":
            sweeps = 3 * (side - 1) * STEPS[kernel]
            assert by_size[largest**2 * 30 * DOUBLE] == sweeps
            assert by_size[largest**2 * 5 * DOUBLE] == sweeps


def test_eight_ranks_on_an_empty_cache(
    launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    done = launch(8, "-m", "runner.programs.nas", "is", "--class", "S")
    assert done.code == 0, done.err
    assert done.result["verified"] is True
    made = sorted(path.name for path in tmp_path.rglob("*.bin"))
    assert [name.split("-")[0] for name in made] == ["runner.programs.nas.is_kernels"]
    # Nothing half-written stays behind.
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".bin", ".lock"}
