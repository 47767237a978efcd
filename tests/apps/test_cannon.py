"""Cannon: layouts, verification that sees every mistake, and all variants under MPI."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autotune.datasets import narrow_space
from autotune.space import load_space
from runner.programs.apps.cannon.matrices import (
    Layout,
    a_entries,
    b_entries,
    checksum,
    make_layout,
    verify,
)
from runner.programs.apps.cannon.options import parse
from runner.programs.apps.cannon.variant_mate import GRAPH
from runner.programs.apps.common.errors import AppUsageError
from tests.apps.conftest import Launch, results_of
from tests.case_table import case_table

ROOT = Path(__file__).parents[2]


class Alone:
    """A communicator of one."""

    rank, size = 0, 1

    def allgather(self, value: object) -> list[object]:
        return [value]

    def Allreduce(self, source: np.ndarray, target: np.ndarray) -> None:
        target[:] = source


def product(layout: Layout) -> dict[tuple[int, int], np.ndarray]:
    every = np.arange(layout.size)
    whole = a_entries(every, every) @ b_entries(every, every)
    spans = [layout.span(k) for k in range(layout.blocks)]
    return {
        (x, y): whole[np.ix_(spans[x], spans[y])].copy()
        for x in range(layout.blocks)
        for y in range(layout.blocks)
    }


@pytest.mark.parametrize("size", [48, 1152])
def test_a_wrong_product_is_seen(size: int) -> None:
    layout = make_layout(size, 1, None, 16)
    right = product(layout)
    assert verify(Alone(), layout, right, 1) == ""
    twice = {k: 2 * v for k, v in right.items()}
    assert verify(Alone(), layout, twice, 2) == ""
    assert "expected" in verify(Alone(), layout, twice, 1)
    turned = {(y, x): block.T.copy() for (x, y), block in right.items()}
    assert "expected" in verify(Alone(), layout, turned, 1)
    right[1, 2][3, 4] += 1 / 64
    assert "expected" in verify(Alone(), layout, right, 1)


@case_table(
    ("processes", "grid", "local", "blocks"),
    [(1, None, None, 1), (2, None, None, 2), (4, None, None, 2), (6, None, None, 6),
     (2, (2, 1), 8, 4), (2, (1, 2), 2, 2), (4, None, 16, 8), (6, (3, 2), 6, 6)],
)  # fmt: skip
def test_layouts(
    processes: int, grid: tuple[int, ...] | None, local: int | None, blocks: int
) -> None:
    layout = make_layout(48, processes, grid, local)
    assert layout.blocks == blocks
    assert layout.processes[1] * layout.local[1] == blocks
    assert layout.width * blocks == 48
    # Every block of C belongs to one process.
    rows, columns = layout.local
    owned = [
        (x + i, y + j)
        for p in range(processes)
        for x, y in [layout.first(p)]
        for i in range(rows)
        for j in range(columns)
    ]
    assert len(set(owned)) == len(owned) == blocks**2
    # In each step a block meets each k once.
    for x in range(blocks):
        assert sorted((x + s) % blocks for s in range(blocks)) == list(range(blocks))


@case_table(
    ("size", "processes", "grid", "local"),
    [(48, 2, None, 3), (50, 4, None, 9), (48, 4, (3, 1), None), (7, 4, None, None)],
)
def test_what_cannot_be_cut(
    size: int, processes: int, grid: tuple[int, ...] | None, local: int | None
) -> None:
    with pytest.raises(AppUsageError):
        make_layout(size, processes, grid, local)


@case_table(
    "words",
    [["--input", "none"], ["--size", "8", "--input", "tiny"], ["--size", "x"],
     ["--workers", "2"], ["--variant", "mate", "--local-grid", "2x2x1"]],
)  # fmt: skip
def test_wrong_words(words: list[str]) -> None:
    with pytest.raises(AppUsageError):
        parse(words)


def test_every_setting_of_its_space_is_a_layout() -> None:
    for ranks in (2, 4, 6):
        facts = {"ranks": ranks, "cores": ranks, "nodes": 1}
        space = load_space("mate-cannon", None, facts, {"size": 48})
        found = 0
        levels = {
            name: [level for level in space[name].levels if level != space[name].default]
            for name in ("variant", "workers", "side", "split")
        }
        for setting in narrow_space(space, levels, "layouts").enumerate():
            assert space.violations(setting) == []
            if setting.get("variant") == "mate":
                workers = int(setting.get("workers", 1))
                local = space.value("ranks_per_process", setting)
                assert isinstance(local, int)
                layout = make_layout(48, ranks // workers, None, local)
                assert layout.local_count >= workers
                assert layout.width % int(setting.get("split", 1)) == 0
                found += 1
        assert found > 10
        # A side that is left out counts with its default.
        assert space.is_valid({"variant": "mate"}) == (ranks != 6)
        assert space.starts


def test_the_checksum_is_exact_and_sees_a_transposed_product() -> None:
    layout = make_layout(48, 1, None, 16)
    right = product(layout)
    every = np.arange(48)
    v, w = 7 * every % 15 - 7, 5 * every % 13 - 6
    whole = a_entries(every, every) @ b_entries(every, every)
    assert checksum(Alone(), layout, right) == v @ whole @ w
    turned = {(y, x): block.T.copy() for (x, y), block in right.items()}
    assert checksum(Alone(), layout, turned) != v @ whole @ w


def mate(ranks: int, *words: str) -> list[str]:
    return ["--variant", "mate", "--ranks-per-process", str(ranks), *words]


TWO_WORKERS = ("--workers", "2", "--affinity", "none")
RUNS = {
    1: (45, [mate(1), mate(9, "--core", "python"), mate(9, *TWO_WORKERS, "--repetitions", "2")]),
    2: (50, [mate(2), mate(2, "--core", "python", "--split", "3"), mate(50, "--split", "3"),
             mate(50, *TWO_WORKERS, "--queue", "shared", "--thread-level", "serialized")]),
    3: (45, [mate(3, "--core", "python", "--split", "2"), mate(3)]),
    4: (60, [mate(1), mate(4), mate(9, "--core", "python"), mate(9, *TWO_WORKERS)]),
    6: (48, [mate(6), mate(24, "--repetitions", "2")]),
}  # fmt: skip
"""Processes -> size, runs on MATE. With 6 processes A's and B's lines have other lengths."""


@pytest.mark.mpi
@pytest.mark.parametrize(
    "processes", [n if n == 4 else pytest.param(n, marks=pytest.mark.slow) for n in RUNS]
)
def test_all_variants_give_every_bit(launch: Launch, processes: int) -> None:
    size, others = RUNS[processes]
    lines = [
        ["--size", str(size), "--iterations", "5", *words]
        for words in (["--variant", "mpi"], ["--variant", "overlap"], *others)
    ]
    found = results_of(launch, processes, "cannon", lines)
    assert all(result["verified"] is True for result in found)
    assert len({result["checksum"] for result in found}) == 1


def test_all_of_the_loop_is_compiled() -> None:
    assert [region.name for region in GRAPH.regions if not region.compiled] == []
