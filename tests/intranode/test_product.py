"""The block-sparse product: its tasks, and that wrong blocks are noticed under real mpirun."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.apps.cab.product import present, tasks_of
from tests.intranode.programs import Start, verified


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
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("steal", ["on", "off"])
def test_products_are_right_with_any_number_of_ranks(start: Start, ranks: int, steal: str) -> None:
    words = "--program product --width 24 --blocks 5 --absent 40 --rounds 2 --times 3 --steal"
    cut = "--steal-threshold 0 --chunk-small 256"
    done = start(ranks, "-m", "runner.apps.cab", *words.split(), steal, *cut.split())
    result = verified(done)
    assert result["tasks"] == len(tasks_of(*present(5, 40, 1)))
    assert result["gflops"] == pytest.approx(2 * 24**3 * result["tasks"] / result["us"] / 1e3)
    assert result["seconds"] == pytest.approx(result["us"] / 1e6)
    assert (result["width"], result["blocks"], result["absent"]) == (24, 5, 40)
    assert result["size"] == 8 * 24**2


BROKEN = {
    "a task is left out": """
        def wrong(self, i, j, k):
            if (i, j, k) != self._tasks[0]:
                plain(self, i, j, k)
    """,
    "one element is off by one": """
        def wrong(self, i, j, k):
            plain(self, i, j, k)
            if (i, j, k) == self._tasks[0]:
                self._at(self._c, (i, j))[3, 2] += 1.0
    """,
}


@pytest.mark.mpi
@pytest.mark.parametrize("what", BROKEN)
def test_wrong_products_are_noticed(start: Start, what: str) -> None:
    code = "\n".join(
        (
            "from runner.apps.cab.product import Product",
            "plain = Product._task",
            textwrap.dedent(BROKEN[what]),
            "Product._task = wrong",
            "from runner.apps.common_mpi import run",
            "from runner.apps.cab.application import main",
            "words = '--program product --width 16 --blocks 3 --rounds 1 --times 2'.split()",
            "run('cab', 'single', lambda comm: main(comm, words))",
        )
    )
    done = start(2, "-c", code)
    assert done.returncode == 1
    assert "verification failed: the data are wrong" in done.stdout
