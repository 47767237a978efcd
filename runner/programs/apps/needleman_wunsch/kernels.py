"""The kernel of the plain forms (see runner.runtimes.core.kernels)."""

from __future__ import annotations

from typing import Any

from numba import carray

from runner.programs.apps.needleman_wunsch import matrix
from runner.runtimes.core.atomic import inner

KERNELS = {"sweep": ("uint8", "uint8", "int32", "int32", "int32", "uint64")}
_sweep = inner(matrix.sweep)


def sweep(down: Any, along: Any, line: Any, left: Any, right: Any, shape: Any) -> None:
    """See :func:`runner.programs.apps.needleman_wunsch.matrix.sweep`; ``shape``: its rows and
    columns.
    """
    s = carray(shape, (2,))
    rows, columns = s[0], s[1]
    _sweep(
        carray(down, rows),
        carray(along, columns),
        carray(line, columns + matrix.ONE),
        carray(left, rows),
        carray(right, rows),
    )
