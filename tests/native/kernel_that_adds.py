"""The smallest useful kernel."""

from typing import Any

from numba import carray

KERNELS = {"add_one": ("float64",)}


def add_one(numbers: Any) -> None:
    n = carray(numbers, (3,))
    for i in range(3):
        n[i] += 1.0
