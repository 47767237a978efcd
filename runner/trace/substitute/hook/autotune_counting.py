"""Counting communicators and requests for mpi4py; they write the same file as native/counts.c."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

BINS = 26
OPERATIONS = (
    *("send", "recv", "wait", "barrier", "bcast", "scatter", "reduce", "gather", "allgather"),
    *("allreduce", "alltoall", "reduce_scatter", "scan", "neighbor", "rma", "other"),
)
SENDS = ("Send", "Bsend", "Ssend", "Rsend", "Sendrecv", "Sendrecv_replace")
RECEIVES = ("Recv", "Irecv", "recv", "irecv")
COLLECTIVES = {
    "Bcast": "bcast",
    "Scatter": "scatter",
    "Scatterv": "scatter",
    "Reduce": "reduce",
    "Gather": "gather",
    "Gatherv": "gather",
    "Allgather": "allgather",
    "Allgatherv": "allgather",
    "Allreduce": "allreduce",
    "Alltoall": "alltoall",
    "Alltoallv": "alltoall",
    "Reduce_scatter_block": "reduce_scatter",
    "Reduce_scatter": "reduce_scatter",
    "Scan": "scan",
    "Exscan": "scan",
    "Barrier": "barrier",
    "Neighbor_allgather": "neighbor",
    "Neighbor_alltoall": "neighbor",
}
MAKERS = (
    *("Dup", "Clone", "Split", "Split_type", "Create", "Create_group", "Create_cart", "Sub"),
    *("Create_graph", "Create_dist_graph", "Create_dist_graph_adjacent"),
)
PROBES = ("Probe", "Iprobe", "Mprobe", "Improbe", "probe", "iprobe", "mprobe", "improbe")
FIRST = ("buf", "obj", "sendbuf", "sendobj")
"""Names of the argument that passes data to a call."""
SECOND = ("recvbuf", "recvobj")
WAITS = ("Wait", "Test", "wait", "test")
WAITS_OF_MANY = ("Waitall", "Waitany", "Waitsome", "Testall", "Testany", "Testsome", "waitall")


def argument(args: Any, options: Any, place: int, names: tuple[str, ...]) -> Any:
    """One argument of a call, given by position or by name; None if omitted."""
    if len(args) > place:
        return args[place]
    return next((options[name] for name in names if name in options), None)


def number_of_requests(args: Any, options: Any) -> int:
    """Number of requests handed to a call that waits for several."""
    return len(argument(args, options, 0, ("requests",)))


class Counts:
    """The counts of this process so far."""

    def __init__(self) -> None:
        self.ops: dict[str, list[int]] = {name: [0] * 5 for name in OPERATIONS}
        self.p2p_sizes, self.coll_sizes = [0] * BINS, [0] * BINS
        self.to: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        self.outside = 0
        # By operation, non-blocking, size bin, communicator size, far: calls, bytes, nanoseconds.
        self.rows: dict[tuple[str, int, int, int, int], list[int]] = defaultdict(lambda: [0, 0, 0])
        self.lock = threading.Lock()
        self.inside = threading.local()
        self.began = time.monotonic_ns()

    def time_call(self, op: str, call: Any, args: Any, options: Any) -> tuple[Any, int | None]:
        """The call's result and its nanoseconds; None if the call is inside another and does not
        count.

        The caller adds the time of a counted call to a row.
        """
        if getattr(self.inside, "call", False):
            return call(*args, **options), None
        self.inside.call = True
        has_result = False
        began = time.monotonic_ns()
        try:
            result = call(*args, **options)
            has_result = True
        finally:
            self.inside.call = False
            duration_ns = time.monotonic_ns() - began
            with self.lock:
                self.ops[op][4] += duration_ns
                self.ops[op][0] += 1
                if not has_result:
                    self._row((op, 0, 0, 0, 0), 0, 0, duration_ns)
        return result, duration_ns

    def _row(self, kind: tuple[str, int, int, int, int], calls: int, size: int, ns: int) -> None:
        row = self.rows[kind]
        row[0] += calls
        row[1] += size
        row[2] += ns

    def plain(self, op: str, nonblocking: bool, amount: int, ns: int, calls: int = 1) -> None:
        """A call without size and partners; ``amount`` of a wait is its number of requests."""
        with self.lock:
            self._row((op, int(nonblocking), 0, 0, 0), calls, amount, ns)

    def message(self, to: int, far: bool, size: int, nonblocking: bool, ns: int) -> None:
        bin_ = min(size.bit_length(), BINS - 1)
        with self.lock:
            self._row(("send", int(nonblocking), bin_, 0, int(far)), 1, size, ns)
            self.ops["send"][1] += nonblocking
            self.ops["send"][2] += size
            self.p2p_sizes[bin_] += 1
            if to < 0:
                self.outside += 1
            else:
                self.to[to][0] += 1
                self.to[to][1] += size

    def collective(
        self, op: str, comm_size: int, far: bool, size: int, nonblocking: bool, ns: int
    ) -> None:
        bin_ = min(size.bit_length(), BINS - 1)
        with self.lock:
            self._row((op, int(nonblocking), bin_, comm_size, int(far)), 1, size, ns)
            self.ops[op][1] += nonblocking
            self.ops[op][2] += size
            self.ops[op][3] += comm_size
            if op != "barrier":
                self.coll_sizes[bin_] += 1

    def write(self, path: Path, rank: int, size: int, host: str) -> None:
        wall = time.monotonic_ns() - self.began
        lines = ["autotune-trace 1", f"rank {rank}", f"size {size}", f"host {host}"]
        lines += [f"wall_ns {wall}", f"outside {self.outside}"]
        lines += [f"op {name} {' '.join(map(str, n))}" for name, n in self.ops.items()]
        lines.append(f"p2p_sizes {' '.join(map(str, self.p2p_sizes))}")
        lines.append(f"coll_sizes {' '.join(map(str, self.coll_sizes))}")
        lines += [f"to {partner} {n} {bytes_}" for partner, (n, bytes_) in sorted(self.to.items())]
        lines += [
            f"row {' '.join(map(str, (*kind, *sums)))}" for kind, sums in sorted(self.rows.items())
        ]
        path.write_text("\n".join([*lines, "end", ""]), encoding="utf-8")


class Sizes:
    """The number of bytes that an argument of mpi4py describes."""

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi

    def buffer(self, spec: Any) -> int:
        """Bytes of an upper-case method's argument: an array, or ``[array, counts, ..., type]``."""
        if spec is None or spec is self._mpi.IN_PLACE or spec is self._mpi.BOTTOM:
            return 0
        if not isinstance(spec, list | tuple):
            return memoryview(spec).nbytes
        data, *rest = spec
        kind = next((w for w in rest if isinstance(w, self._mpi.Datatype | str)), None)
        if isinstance(kind, self._mpi.Datatype):
            width = kind.Get_size()
        else:
            width = memoryview(data).itemsize
        counts = next((w for w in rest if not isinstance(w, self._mpi.Datatype | str)), None)
        if counts is None:
            return memoryview(data).nbytes
        if isinstance(counts, tuple) and counts and not isinstance(counts[0], int):
            counts = counts[0]
        return int(width * (counts if isinstance(counts, int) else sum(counts)))

    def pickle_size(self, item: Any) -> int:
        """Bytes of a lower-case method's argument after pickling."""
        return len(self._mpi.pickle.dumps(item))


class Maker:
    """Makes the counting classes of one mpi4py.MPI module."""

    def __init__(self, mpi: Any, counts: Counts, far: list[bool]) -> None:
        self.mpi, self.counts, self.sizes = mpi, counts, Sizes(mpi)
        self.far = far
        """For each rank of COMM_WORLD: True if it is on another node."""
        self.world = mpi.COMM_WORLD.Get_group()
        self.requests = {mpi.Request: self._request(mpi.Request)}
        self.requests[mpi.Prequest] = self._request(mpi.Prequest)
        names = ("Intracomm", "Cartcomm", "Graphcomm", "Distgraphcomm")
        self.comms = {getattr(mpi, n): self._comm(getattr(mpi, n)) for n in names}

    def wrap(self, result: Any) -> Any:
        """The counting form of a communicator or request that a method returned."""
        kind = self.comms.get(type(result)) or self.requests.get(type(result))
        return result if kind is None or not result else kind(result)

    def _timing_method(
        self,
        op: str,
        name: str,
        base: Any,
        amount: Callable[[Any, Any], int] = lambda args, options: 0,
    ) -> Any:
        method = getattr(base, name)
        nonblocking = op == "recv" and name in ("Irecv", "irecv")

        def call(*args: Any, **options: Any) -> Any:
            size = amount(args, options)
            result, duration_ns = self.counts.time_call(op, method, args, options)
            if duration_ns is not None:
                self.counts.plain(op, nonblocking, size, duration_ns)
            return self.wrap(result)

        return call

    def _request(self, base: Any) -> type:
        methods = {
            name: self._timing_method("wait", name, base, lambda args, options: 1)
            for name in WAITS
            if hasattr(base, name)
        }
        many = {
            name: staticmethod(self._timing_method("wait", name, base, number_of_requests))
            for name in WAITS_OF_MANY
            if hasattr(base, name)
        }
        return type(base.__name__, (base,), {**methods, **many})

    def _comm(self, base: Any) -> type:
        methods = {n: self._timing_method("other", n, base) for n in MAKERS if hasattr(base, n)}
        methods |= {n: self._timing_method("wait", n, base) for n in PROBES}
        methods |= {n: self._timing_method("recv", n, base) for n in RECEIVES}
        for name in SENDS:
            methods[name] = self._send(base, name, self.sizes.buffer, False)
            methods[name.lower()] = self._send(base, name.lower(), self.sizes.pickle_size, False)
            methods[f"I{name.lower()}"] = self._send(base, f"I{name.lower()}", None, True)
            methods[f"i{name.lower()}"] = self._send(base, f"i{name.lower()}", None, True)
        for name, op in COLLECTIVES.items():
            for form in (name, name.lower(), f"I{name.lower()}"):
                methods[form] = self._collective(base, form, op)
        return type(base.__name__, (base,), {k: v for k, v in methods.items() if v is not None})

    def _send(self, base: Any, name: str, measure: Any, nonblocking: bool) -> Any:
        method = getattr(base, name, None)
        if method is None:
            return None
        if measure is None:
            measure = self.sizes.buffer if name[0] == "I" else self.sizes.pickle_size

        def call(comm: Any, *args: Any, **options: Any) -> Any:
            dest = argument(args, options, 1, ("dest",))
            size = measure(argument(args, options, 0, FIRST))
            result, duration_ns = self.counts.time_call("send", method, (comm, *args), options)
            if duration_ns is not None and dest == self.mpi.PROC_NULL:
                self.counts.plain("send", nonblocking, 0, duration_ns, calls=0)
            elif duration_ns is not None:
                (to,) = self._world_ranks(comm, [dest])
                self.counts.message(to, self._is_far(to), size, nonblocking, duration_ns)
            return self.wrap(result)

        return call

    def _collective(self, base: Any, name: str, op: str) -> Any:
        method = getattr(base, name, None)
        if method is None:
            return None
        measure = self.sizes.pickle_size if name[0].islower() else self.sizes.buffer

        def call(comm: Any, *args: Any, **options: Any) -> Any:
            result, duration_ns = self.counts.time_call(op, method, (comm, *args), options)
            if duration_ns is not None:
                outgoing, incoming = (
                    argument(args, options, at, names) for at, names in enumerate((FIRST, SECOND))
                )
                size = (
                    0 if op == "barrier" else self._handed_in(op, measure, comm, outgoing, incoming)
                )
                nonblocking = name[0] == "I"
                self.counts.collective(
                    op, comm.Get_size(), self._spans(comm), size, nonblocking, duration_ns
                )
            return self.wrap(result)

        return call

    def _handed_in(self, op: str, measure: Any, comm: Any, outgoing: Any, incoming: Any) -> int:
        """Bytes that this rank passes: for a scatter its block; in place, the other buffer's."""
        buffer, other = (
            (incoming, outgoing)
            if op == "scatter" and incoming is not None
            else (
                outgoing,
                incoming,
            )
        )
        if buffer is not self.mpi.IN_PLACE:
            return int(measure(buffer))
        whole = int(measure(other))
        return whole // comm.Get_size() if op in ("scatter", "gather", "allgather") else whole

    def _world_ranks(self, comm: Any, ranks: list[int]) -> list[int]:
        """The COMM_WORLD ranks of a communicator's ranks; -1 for a rank outside of COMM_WORLD."""
        group = comm.Get_group()
        world_ranks = self.mpi.Group.Translate_ranks(group, ranks, self.world)
        group.Free()
        return [-1 if rank == self.mpi.UNDEFINED else int(rank) for rank in world_ranks]

    def _is_far(self, to: int) -> bool:
        return to < 0 or self.far[to]

    def _spans(self, comm: Any) -> bool:
        """True if a communicator has processes on other nodes."""
        # Cached on the object, because a communicator may be called very often.
        if "autotune_spans" not in vars(comm):
            world_ranks = self._world_ranks(comm, list(range(comm.Get_size())))
            comm.autotune_spans = any(map(self._is_far, world_ranks))
        return bool(comm.autotune_spans)


def install(mpi: Any, directory: str) -> None:
    """Start counting, and write the rank's file at the end of the program."""
    if not mpi.Is_initialized():
        return
    world, host, process = mpi.COMM_WORLD, mpi.Get_processor_name(), os.getpid()
    rank, size = world.Get_rank(), world.Get_size()
    # Before anything that can fail on a single rank, because all ranks take part.
    far = [name != host for name in world.allgather(host)]
    path = Path(directory) / f"rank-{rank}"
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return
    counts = Counts()
    maker = Maker(mpi, counts, far)
    mpi.COMM_WORLD = maker.wrap(world)
    mpi.Request = maker.requests[mpi.Request]
    mpi.Prequest = maker.requests[mpi.Prequest]

    def finish() -> None:
        if os.getpid() == process:
            counts.write(path, rank, size, host)

    atexit.register(finish)
