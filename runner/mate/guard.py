"""Blocking calls of mpi4py raise while a rank's worker makes them.

Such a call would stop the worker with all its ranks, and often the job for ever.  The methods live
in extension types, which cannot be patched openly; while ranks run, their entries in the type's
dictionary are replaced by ones that ask which thread calls.  So every communicator and request is
guarded, also one that was made or stored before.

Not caught: a method bound before (``r = comm.Recv; ...; r(buf)``), one-sided and file operations,
MPI called from C, other ways to block (``time.sleep``, locks), and threads that are no workers.
"""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from runner.mate.errors import MateError

_BLOCKING = {
    "Comm": (
        *("Send", "Recv", "Ssend", "Rsend", "Bsend", "Sendrecv", "Sendrecv_replace"),
        *("Probe", "Mprobe", "Barrier", "Bcast", "Gather", "Gatherv", "Scatter", "Scatterv"),
        *("Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Alltoallw"),
        *("Reduce", "Allreduce", "Reduce_scatter", "Reduce_scatter_block"),
        *("send", "recv", "ssend", "bsend", "sendrecv", "probe", "mprobe", "barrier", "bcast"),
        *("gather", "scatter", "allgather", "alltoall", "reduce", "allreduce"),
        *("Dup", "Dup_with_info", "Split", "Split_type", "Create", "Disconnect"),
    ),
    "Intracomm": (
        *("Scan", "Exscan", "scan", "exscan", "Spawn"),
        *("Create_cart", "Create_graph", "Create_dist_graph"),
    ),
    "Request": (
        *("Wait", "Waitall", "Waitany", "Waitsome"),
        *("wait", "waitall", "waitany", "waitsome"),
    ),
}
_INSTEAD = {
    "barrier": "await ctx.barrier()",
    "bcast": "await ctx.bcast(...)",
    "reduce": "await ctx.reduce(...)",
    "allreduce": "await ctx.allreduce(...)",
    "gather": "await ctx.gather(...)",
    "scatter": "await ctx.scatter(...)",
    "allgather": "await ctx.allgather(...)",
    "allgatherv": "await ctx.allgatherv(...)",
    "send": "await ctx.send(...)",
    "recv": "await ctx.recv(...)",
    "wait": "await ctx.wait(...)",
    "waitall": "await ctx.waitall(...)",
}


class Guard:
    """Raises in the threads whose idents are in ``threads``."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Guard mpi4py's blocking calls; what was there before is put back."""
        from mpi4py import MPI

        kinds = {getattr(MPI, kind): names for kind, names in _BLOCKING.items()}
        saved = []
        for kind, names in kinds.items():
            entries = _dictionary(kind)
            for name in names:
                if name in entries:
                    saved.append((kind, name, entries[name]))
                    entries[name] = self._guarded(kind, name, entries[name])
            _changed(kind)
        try:
            yield
        finally:
            for kind, name, entry in reversed(saved):
                _dictionary(kind)[name] = entry
            for kind in kinds:
                _changed(kind)

    def _guarded(self, kind: type, name: str, entry: Any) -> Any:
        threads, where = self.threads, f"{kind.__name__}.{name}"
        instead = _INSTEAD.get(name.lower(), "an awaited call of ctx")

        def refuse() -> None:
            if threading.get_ident() in threads:
                raise MateError(
                    f"{where} would block a worker with all its ranks: use {instead} instead"
                )

        if isinstance(entry, (classmethod, staticmethod)):
            return type(entry)(_checked(entry.__func__, refuse))
        return _checked(entry, refuse)


def _checked(function: Callable[..., Any], refuse: Callable[[], None]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        refuse()
        return function(*args, **kwargs)

    return call


def _dictionary(kind: type) -> dict[str, Any]:
    """The dictionary behind the read-only view ``kind.__dict__``."""
    (entries,) = gc.get_referents(kind.__dict__)
    found: dict[str, Any] = entries
    return found


def _changed(kind: type) -> None:
    """Tell the interpreter to forget cached look-ups of the type."""
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
