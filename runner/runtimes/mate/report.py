"""Selects the process that prints an error found by several.

A wrong graph is wrong in every process. The lowest process that finds it prints it, even if it is
the only one.
"""

from __future__ import annotations

import time
from typing import Any

from runner.runtimes.core.sources import sha256

TAG = 32767
"""The smallest upper bound of tags that MPI allows."""
PATIENCE_S = 2.0
"""Time in which a lower process must have found the same error."""
_LOOK_S = 1e-3


def is_first(comm: Any, text: str) -> bool:
    """True if this process is the lowest of those that have found this error by now.

    The job is about to end. Each process that finds an error notifies the higher ones, and waits at
    most ``PATIENCE_S`` for notices of lower ones. Not collective, and without blocking calls.
    """
    from mpi4py import MPI

    own = sha256(text.encode()).digest()
    try:
        return _is_first(comm, MPI.ANY_SOURCE, own)
    except MPI.Exception:
        # The error must be printed in any case.
        return True


def _is_first(comm: Any, anyone: int, own: bytes) -> bool:
    sends = [comm.Isend(own, higher, TAG) for higher in range(comm.rank + 1, comm.size)]
    end = time.monotonic() + PATIENCE_S
    first = bytearray(len(own))
    while comm.rank and first != own and time.monotonic() < end:
        request = comm.Irecv(first, anyone, TAG)
        while not request.Test():
            if time.monotonic() >= end:
                request.Cancel()
                break
            time.sleep(_LOOK_S)
    for request in sends:
        request.Test()
    return first != own
