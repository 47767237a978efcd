"""The block-sparse product: its tasks, and that wrong blocks are noticed under real mpirun."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.programs.apps.cab.product import present, tasks_of
from tests.intranode.programs import Commands, Start, verified


@given(st.integers(1, 7), st.integers(0, 99), st.integers(1, 1000))
def test_tasks_are_the_products_of_blocks_that_are_there(
    blocks: int, absent: int, seed: int
) -> None:
    first, second = present(blocks, absent, seed)
    tasks = tasks_of(first, second)
    assert len(set(tasks)) == len(tasks)
    a, b, found = (np.zeros((blocks, blocks), int) for _ in range(3))
    for matrix, there in ((a, first), (b, second)):
        for at in there:
            matrix[at] = 1
    for i, j, k in tasks:
        assert a[i, k] == b[k, j] == 1
        found[i, j] += 1
    assert np.array_equal(found, a @ b)
    if absent == 0:
        assert len(tasks) == blocks**3


@pytest.mark.mpi
@pytest.mark.parametrize(
    "ranks", [4, *(pytest.param(ranks, marks=pytest.mark.slow) for ranks in (1, 2))]
)
def test_products_are_right_with_any_number_of_ranks(lines: Commands, ranks: int) -> None:
    words = "--program product --width 24 --blocks 5 --absent 40 --rounds 2 --times 3"
    cut = "--steal-threshold 0 --chunk-small 256 --steal"
    common = [*words.split(), *cut.split()]
    for done in lines(
        ranks, [["runner.programs.apps.cab", *common, steal] for steal in ("on", "off")]
    ):
        result = verified(done)
        assert result["tasks"] == len(tasks_of(*present(5, 40, 1)))
        assert result["gflops"] == pytest.approx(2 * 24**3 * result["tasks"] / result["us"] / 1e3)
        assert result["seconds"] == pytest.approx(result["us"] / 1e6)
        assert (result["width"], result["blocks"], result["absent"]) == (24, 5, 40)
        assert result["size"] == 8 * 24**2


BROKEN = """
from runner.programs.apps.cab.application import main
from runner.programs.apps.cab.product import Product
from runner.programs.apps.common.mpi import run

plain = Product._task

def left_out(self, i, j, k):
    if (i, j, k) != self._tasks[0]:
        plain(self, i, j, k)

def one_element_is_off(self, i, j, k):
    plain(self, i, j, k)
    if (i, j, k) == self._tasks[0]:
        self._at(self._c, (i, j))[3, 2] += 1.0

def each(comm):
    words = "--program product --width 16 --blocks 3 --rounds 1 --times 2".split()
    for wrong in (left_out, one_element_is_off):
        Product._task = wrong
        assert main(comm, words) == 1, wrong
    return 1

run("cab", "single", each)
"""


@pytest.mark.mpi
def test_wrong_products_are_noticed(start: Start) -> None:
    done = start(2, "-c", BROKEN)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout.count('"verified": false') == 2
