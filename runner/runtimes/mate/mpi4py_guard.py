"""Guards mpi4py while ranks run: blocking calls from a worker raise, other calls are serialized.

A blocking call would stop the worker with all its ranks, and often the job for ever. The methods
are in extension types, which cannot be patched in the usual way. While ranks run, their entries in
the type's dictionary are replaced by functions that check the calling thread. So every communicator
and request is guarded, including those created or stored earlier. At thread level "serialized",
every other method and property of the classes and every function of ``mpi4py.MPI`` likewise takes
the one lock of the message layer, in any thread.

The guard does not see: a method bound earlier (``r = comm.Recv; ...; r(buf)``), one-sided and file
operations, MPI calls from C, other ways to block (``time.sleep``, locks), and threads that are not
workers.
"""

from __future__ import annotations

import ctypes
import gc
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from runner.runtimes.mate.call_lock import CallLock
from runner.runtimes.mate.errors import MateError

_BLOCKING = {
    # Local calls, those that start something, and tests are left out; so is Free, which waits for
    # nobody in current libraries.
    "Comm": (
        *("Send", "Recv", "Ssend", "Rsend", "Bsend", "Sendrecv", "Sendrecv_replace"),
        *("Probe", "Mprobe", "Barrier", "Bcast", "Gather", "Gatherv", "Scatter", "Scatterv"),
        *("Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Alltoallw"),
        *("Reduce", "Allreduce", "Reduce_scatter", "Reduce_scatter_block"),
        *("send", "recv", "ssend", "bsend", "sendrecv", "probe", "mprobe", "barrier", "bcast"),
        *("gather", "scatter", "allgather", "alltoall", "reduce", "allreduce"),
        *("Dup", "Dup_with_info", "Clone", "Split", "Split_type", "Create", "Disconnect", "Join"),
        *("Detach_buffer", "Flush_buffer", "Agree", "Shrink"),
    ),
    "Intracomm": (
        *("Scan", "Exscan", "scan", "exscan", "Spawn", "Spawn_multiple", "Accept", "Connect"),
        *("Create_group", "Create_from_group", "Create_intercomm", "Create_cart", "Create_graph"),
        *("Create_dist_graph", "Create_dist_graph_adjacent", "Cart_map", "Graph_map"),
    ),
    "Intercomm": ("Merge", "Create_from_groups"),
    "Topocomm": (
        *("Neighbor_allgather", "Neighbor_allgatherv", "Neighbor_alltoall"),
        *("Neighbor_alltoallv", "Neighbor_alltoallw", "neighbor_allgather", "neighbor_alltoall"),
    ),
    "Cartcomm": ("Sub",),
    "Message": ("Probe", "Recv", "probe", "recv"),
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


_NO_CALLS = ("buffer", "memory", "Pickle")
"""Classes of mpi4py whose methods do not call MPI."""
_ANY_THREAD = ("Is_initialized", "Is_finalized", "Query_thread", "Is_thread_main")
"""Functions that MPI allows concurrently with other calls."""


class Guard:
    """Raises in the threads whose ids are in ``threads``; other calls hold ``call_lock``."""

    def __init__(self, call_lock: CallLock | None = None) -> None:
        self.threads: set[int] = set()
        self._call_lock = call_lock

    @contextmanager
    def install(self) -> Iterator[None]:
        """Guard mpi4py's calls in this block; afterwards the original entries are restored."""
        from mpi4py import MPI

        blocking = {getattr(MPI, kind): names for kind, names in _BLOCKING.items()}
        kinds = list(blocking) if self._call_lock is None else _classes(MPI)
        originals = []
        for kind in kinds:
            entries, names = _dictionary(kind), blocking.get(kind, ())
            for name, entry in list(entries.items()):
                if name in names:
                    new = self._guard(kind, name, entry)
                elif name == "Abort" and self._call_lock is not None:
                    new = _last(self._call_lock, entry)
                else:
                    new = self._lock_entry(entry)
                if new is not entry and (name in names or not name.startswith("__")):
                    originals.append((entries, name, entry))
                    entries[name] = new
            _drop_lookups(kind)
        for name, entry in list(vars(MPI).items()):
            if self._call_lock is not None and _is_function(entry) and name not in _ANY_THREAD:
                originals.append((vars(MPI), name, entry))
                vars(MPI)[name] = self._lock_entry(entry)
        try:
            yield
        finally:
            for entries, name, entry in reversed(originals):
                entries[name] = entry
            for kind in kinds:
                _drop_lookups(kind)

    def _lock_entry(self, entry: Any) -> Any:
        """The entry of a class or module with the lock around it, if there is a lock."""
        call_lock = self._call_lock
        if call_lock is None:
            return entry
        if isinstance(entry, (classmethod, staticmethod)):
            return type(entry)(_with_lock(call_lock, entry.__func__))
        if isinstance(entry, types.ClassMethodDescriptorType):
            bound = entry.__get__
            return classmethod(
                _with_lock(call_lock, lambda kind, *a, **k: bound(None, kind)(*a, **k))
            )
        if isinstance(entry, (types.GetSetDescriptorType, property)):
            return property(
                _with_lock(call_lock, entry.__get__), _with_lock(call_lock, entry.__set__)
            )
        return _with_lock(call_lock, entry) if callable(entry) else entry

    def _guard(self, kind: type, name: str, entry: Any) -> Any:
        threads, where = self.threads, f"{kind.__name__}.{name}"
        instead = _INSTEAD.get(name.lower(), "an awaited call of ctx")

        def refuse() -> None:
            if threading.get_ident() in threads:
                raise MateError(
                    f"{where} would block a worker with all its ranks: use {instead} instead",
                    code="mate.call",
                )

        if isinstance(entry, (classmethod, staticmethod)):
            return type(entry)(_with_check(entry.__func__, refuse))
        return _with_check(entry, refuse)


def _with_check(function: Callable[..., Any], refuse: Callable[[], None]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        refuse()
        return function(*args, **kwargs)

    return call


def _with_lock(call_lock: CallLock, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with call_lock:
            return function(*args, **kwargs)

    return call


def _last(call_lock: CallLock, function: Callable[..., Any]) -> Callable[..., Any]:
    """A call that ends the job."""

    def call(*args: Any, **kwargs: Any) -> Any:
        call_lock.enter_last()
        return function(*args, **kwargs)

    return call


def _classes(module: Any) -> list[type]:
    """The classes of mpi4py whose methods call MPI."""
    return [
        kind
        for name, kind in vars(module).items()
        if isinstance(kind, type)
        and kind.__module__ == module.__name__
        and kind.__name__ == name
        and name not in _NO_CALLS
    ]


def _is_function(entry: Any) -> bool:
    """True if an entry of the module is a function of mpi4py."""
    return callable(entry) and type(entry).__name__ in (
        "builtin_function_or_method",
        "cython_function_or_method",
        "fused_cython_function",
    )


def _dictionary(kind: type) -> dict[str, Any]:
    """The dictionary behind the read-only view ``kind.__dict__``."""
    (entries,) = gc.get_referents(kind.__dict__)
    dictionary: dict[str, Any] = entries
    return dictionary


def _drop_lookups(kind: type) -> None:
    """Make the interpreter drop its cached look-ups of the type."""
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
