"""Kinds of elements and of reductions, as numbers for compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

from runner.runtimes.intranode.errors import IntranodeError

KINDS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
OPERATIONS = ("sum", "min", "max")


def operation_of(op: Any) -> str:
    """The name of an operation: ``"sum"``, ``MPI.SUM`` and so on; raises IntranodeError."""
    from mpi4py import MPI

    for name in OPERATIONS:
        if op in (name, name.upper(), getattr(MPI, name.upper())):
            return name
    raise IntranodeError(
        f"operation {op!r}: expected one of {', '.join(OPERATIONS)}", code="intranode.call"
    )


def mpi_operation(comm: Any, send: Any, recv: Any, name: str) -> None:
    """MPI's own allreduce; ``send`` may be ``recv``."""
    from mpi4py import MPI

    comm.Allreduce(MPI.IN_PLACE if send is recv else send, recv, getattr(MPI, name.upper()))


def code_of(dtype: np.dtype[Any], operation: str) -> int:
    """The number of a kind with an operation; raises :class:`IntranodeError`."""
    kind = f"{dtype.kind}{dtype.itemsize}"
    if kind not in KINDS or not dtype.isnative:
        raise IntranodeError(
            f"elements of {dtype} cannot be reduced: expected whole numbers of 1 to 8 bytes, or "
            "floats of 4 or 8",
            code="intranode.array",
        )
    return KINDS.index(kind) * len(OPERATIONS) + OPERATIONS.index(operation)
