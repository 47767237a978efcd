"""A kernel that can raise (ZeroDivisionError) and therefore needs Python: must be refused."""

from typing import Any

from numba import carray

KERNELS = {"divide": ("uint64",)}


def divide(numbers: Any) -> None:
    n = carray(numbers, (2,))
    n[0] = n[0] // n[1]
