"""Kinds of elements and operations that can be reduced, as numbers for compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

from runner.intranode.errors import IntranodeError

KINDS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
OPERATIONS = ("sum", "min", "max")


def operation_of(op: Any) -> str:
    """The name of an operation: ``"sum"``, ``MPI.SUM`` and so on; raises IntranodeError."""
    if isinstance(op, str):
        name = op.lower()
    else:
        from mpi4py import MPI

        known = {"sum": MPI.SUM, "min": MPI.MIN, "max": MPI.MAX}
        name = next((word for word, known_op in known.items() if op == known_op), "")
    if name not in OPERATIONS:
        raise IntranodeError(f"operation {op!r}: expected one of {', '.join(OPERATIONS)}")
    return name


def code_of(dtype: np.dtype[Any], operation: str) -> int:
    """The number of a kind with an operation; raises :class:`IntranodeError`."""
    kind = f"{dtype.kind}{dtype.itemsize}"
    if kind not in KINDS or not dtype.isnative:
        raise IntranodeError(
            f"elements of {dtype} cannot be reduced: expected whole numbers of 1 to 8 bytes, or "
            "floats of 4 or 8"
        )
    return KINDS.index(kind) * len(OPERATIONS) + OPERATIONS.index(operation)
