"""The edit matrix of one block, one function for the kernel and for compiled tasks.

It is a plain function of the dialect of compiled regions.  All indices are unsigned, so that they
need no check for negative values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

ZERO = np.uint64(0)
ONE = np.uint64(1)


def sweep(down: Any, along: Any, line: Any, left: Any, right: Any) -> None:
    """One block: A[i, j] = max(A[i-1, j-1] + (1 if equal else -1), A[i-1, j] - 1, A[i, j-1] - 1).

    Only the borders of a block are kept (Hirschberg's sweep; Cicotti 2011, 6.1).  ``down``,
    ``along``: the bases of its rows and columns.  ``line``: the row above it with the corner first,
    which becomes its last row with the last entry of ``left`` first.  ``left``: the column before
    it; ``right``: its last column, which may be the same array.
    """
    rows, columns = np.uint64(len(down)), np.uint64(len(along))
    i = ZERO
    while i < rows:
        base = down[i]
        diagonal = line[ZERO]
        value = left[i]
        line[ZERO] = value
        j = ZERO
        while j < columns:
            up = line[j + ONE]
            score = diagonal + np.int32(1) if base == along[j] else diagonal - np.int32(1)
            gap = max(up, value) - np.int32(1)
            value = max(score, gap)
            line[j + ONE] = value
            diagonal = up
            j += ONE
        right[i] = value
        i += ONE
