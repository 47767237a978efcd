"""The kernel: the edit matrix of one block, two rows at a time (see runner.native.kernels).

A[i, j] = max(A[i-1, j-1] + (1 if equal else -1), A[i-1, j] - 1, A[i, j-1] - 1); only the borders of
a block are kept (Hirschberg's sweep; Cicotti 2011, 6.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

KERNELS = {"sweep": ("uint8", "uint8", "int32", "int32", "int32", "uint64")}
ZERO = np.uint64(0)
ONE = np.uint64(1)


def sweep(down: Any, along: Any, line: Any, left: Any, right: Any, shape: Any) -> None:
    """One block: ``shape`` is its rows and columns.

    ``down``, ``along``: the bases of its rows and columns.  ``line``: the row above it with the
    corner first, which becomes its last row with the last entry of ``left`` first.  ``left``: the
    column before it; ``right``: its last column.
    """
    s = carray(shape, (2,))
    rows, columns = s[0], s[1]
    a, b = carray(down, rows), carray(along, columns)
    above, before, after = carray(line, columns + ONE), carray(left, rows), carray(right, rows)
    i = ZERO
    while i < rows:
        base = a[i]
        diagonal = above[ZERO]
        value = before[i]
        above[ZERO] = value
        j = ZERO
        while j < columns:
            up = above[j + ONE]
            score = diagonal + np.int32(1) if base == b[j] else diagonal - np.int32(1)
            gap = max(up, value) - np.int32(1)
            value = max(score, gap)
            above[j + ONE] = value
            diagonal = up
            j += ONE
        after[i] = value
        i += ONE
