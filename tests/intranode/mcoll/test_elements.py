"""The reduction of elements against numpy, for all kinds, operations, lengths and places."""

from __future__ import annotations

from typing import Any

import numpy as np

from runner.runtimes.core.kernels import load
from runner.runtimes.intranode.mcoll.kinds import KINDS, OPERATIONS, code_of
from tests.case_table import case_table

NUMPY: dict[str, Any] = {"sum": np.add, "min": np.minimum, "max": np.maximum}


def values(kind: str, count: int, seed: int) -> Any:
    dice = np.random.default_rng(seed)
    if kind[0] == "f":
        return dice.normal(size=count).astype(kind)
    limits = np.iinfo(kind)
    return dice.integers(limits.min, limits.max, count, dtype=kind, endpoint=True)


@case_table("operation", OPERATIONS)
@case_table("kind", KINDS)
def test_elements_are_combined_as_numpy_does(kind: str, operation: str) -> None:
    """Sums of whole numbers wrap around in both."""
    combine = load("tests.intranode.mcoll.element_kernel").function("combine")
    code = code_of(np.dtype(kind), operation)
    for count in (0, 1, 7, 8, 63, 64, 65, 1000):
        for gap in (0, 1):
            a, b = (values(kind, count + gap, seed)[gap:] for seed in (1, 2))
            expected = NUMPY[operation](a, b)
            to = np.zeros(count + 2, kind)
            combine(code, to[1:].ctypes.data, a.ctypes.data, b.ctypes.data, count)
            assert np.array_equal(to[1:-1], expected)
            assert to[0] == to[-1] == 0
            combine(code, a.ctypes.data, a.ctypes.data, b.ctypes.data, count)
            assert np.array_equal(a, expected)
