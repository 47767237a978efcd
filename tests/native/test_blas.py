"""Products of matrices in compiled code: by numpy's BLAS library, and by the loop in its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.runtimes import mate
from runner.runtimes.core import blas, kernels, library
from runner.runtimes.core.c_function import CFunction
from tests.mate.compiled.running import run, state

PRODUCT = mate.Graph("product")


@PRODUCT.region(compiled=True)
def product(part: Any, i: int) -> None:
    library.add_product(part.dgemm, part.a[i], part.b, part.c)


@pytest.fixture(scope="module")
def loop() -> CFunction:
    """What stands in for a BLAS library."""
    address = kernels.load("runner.runtimes.core.blas_kernel").address("dgemm")
    return CFunction(address, blas.dgemm().signature)


def whole(rng: np.random.Generator, *shape: int) -> Any:
    """Small whole numbers: every order of additions gives the same bits."""
    return rng.integers(-9, 10, shape).astype(float)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 70), st.integers(0, 3), st.booleans())
def test_a_product_is_added_in_compiled_code_and_in_python(
    loop: CFunction, rows: int, columns: int, depth: int, gap: int, replaced: bool
) -> None:
    """The rows of the matrices may lie apart (``gap``)."""
    rng = np.random.default_rng([rows, columns, depth])
    part = state(
        dgemm=loop if replaced else blas.dgemm(),
        a=whole(rng, 2, rows, depth + gap)[:, :, :depth],
        b=whole(rng, depth, columns + gap)[:, :columns],
        c=whole(rng, rows, columns + gap)[:, :columns],
    )
    wanted = part.c + part.a[0] @ part.b + part.a[1] @ part.b
    plain = part.c.copy()
    run(PRODUCT, part, 2)
    assert np.array_equal(part.c, wanted)
    for a in part.a:
        library.add_product(part.dgemm, a, part.b, plain)
    assert np.array_equal(plain, wanted)


def test_the_loop_scales_both_matrices_and_forgets_c(loop: CFunction) -> None:
    rng = np.random.default_rng(0)
    a, b, c = whole(rng, 3, 200), whole(rng, 200, 5), whole(rng, 3, 5)
    wanted = 2 * (a @ b) + 4 * c
    loop(101, 111, 111, 3, 5, 200, 2.0, a, 200, b, 5, 4.0, c, 5)
    assert np.array_equal(c, wanted)
    c.fill(np.nan)
    loop(101, 111, 111, 3, 5, 200, 1.0, a, 200, b, 5, 0.0, c, 5)
    assert np.array_equal(c, a @ b)


def test_the_library_is_that_of_numpy() -> None:
    """numpy's wheels bring OpenBLAS; the program of the baselines is linked with the same file."""
    name, path = blas.symbol(), blas.library_path()
    assert name in blas.NAMES
    assert path is not None
    assert name.encode() in Path(path).read_bytes()


def test_without_a_library_the_loop_takes_its_place(
    loop: CFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blas, "NAMES", {})
    blas._of_numpy.cache_clear()
    blas.dgemm.cache_clear()
    try:
        assert blas.dgemm().address == loop.address
        assert blas.library_path() is None
    finally:
        blas._of_numpy.cache_clear()
        blas.dgemm.cache_clear()
