"""A kernel that calls plain functions of its module, one of them of distinct arrays."""

from typing import Any

from numba import carray

from runner.runtimes.core.atomic import inner
from runner.runtimes.core.distinct import distinct

KERNELS = {"scale_and_add": ("float64", "float64")}

FACTOR = 2.0


def scaled(x: float) -> float:
    return FACTOR * x


@distinct
def add_scaled(a: Any, b: Any) -> None:
    for i in range(len(a)):
        b[i] += scaled(a[i])


_add_scaled = inner(add_scaled)


def scale_and_add(a: Any, b: Any) -> None:
    _add_scaled(carray(a, (3,)), carray(b, (3,)))
