"""Which names mean what: calls that may wait, and calls that the runtime does not have."""

from __future__ import annotations

STARTS = frozenset({"Isend", "Irecv"})
"""Methods that start a message."""

BLOCKING = frozenset(
    {
        *("Send", "Recv", "Barrier", "Bcast", "Reduce", "Allreduce", "Gather", "Scatter"),
        *("Allgather", "Allgatherv", "Wait", "Waitall", "local_bcast", "local_barrier"),
    }
)
"""Methods that may have to wait: they are awaited (Martin 2018, appendix E)."""

WAITS = frozenset({"Wait", "Waitall"})
"""Taken out of a region that waits for another's messages: the graph does it (Martin 2018, 3.4)."""

UNSUPPORTED = frozenset(
    {
        *("Ssend", "Bsend", "Rsend", "Issend", "Ibsend", "Irsend", "Sendrecv", "Isendrecv"),
        *("Sendrecv_replace", "Probe", "Iprobe", "Mprobe", "Improbe", "Test", "Testall"),
        *("Testany", "Testsome", "Waitany", "Waitsome", "Cancel", "Send_init", "Recv_init"),
        *("Start", "Startall", "Alltoall", "Alltoallv", "Alltoallw", "Gatherv", "Scatterv"),
        *("Reduce_scatter", "Reduce_scatter_block", "Scan", "Exscan", "Ibarrier", "Ibcast"),
        *("Ireduce", "Iallreduce", "Igather", "Iscatter", "Iallgather", "Iallgatherv"),
        *("Ialltoall", "Dup", "Split", "Split_type", "Create", "Create_cart", "Create_graph"),
        *("Create_dist_graph", "Create_group", "Spawn", "Connect", "Accept", "Disconnect"),
    }
)
"""Methods of communicators and requests that the runtime has not (Martin 2018, appendix E)."""

OBJECTS = frozenset(
    {
        *("send", "recv", "isend", "irecv", "ssend", "bsend", "sendrecv", "bcast", "reduce"),
        *("allreduce", "gather", "scatter", "allgather", "alltoall", "scan", "exscan", "barrier"),
        *("probe", "iprobe"),
    }
)
"""Methods for pickled objects; refused on what is known to be a communicator."""

_NOT_SUPPORTED = "is not supported by the runtime"
_INSTEAD = {
    "Sendrecv": "Irecv, Send and Wait",
    "Sendrecv_replace": "Irecv into another buffer, Send and Wait",
    **dict.fromkeys(("Ssend", "Bsend", "Rsend"), "Send"),
    **dict.fromkeys(("Issend", "Ibsend", "Irsend"), "Isend"),
    **dict.fromkeys(("Test", "Waitany", "Waitsome", "Testany", "Testsome", "Testall"), "Waitall"),
    **dict.fromkeys(("Alltoall", "Alltoallv", "Alltoallw"), "Isend, Irecv and Waitall"),
    **dict.fromkeys(("Gatherv", "Scatterv"), "Isend, Irecv and Waitall"),
    **dict.fromkeys(("Reduce_scatter", "Reduce_scatter_block"), "Allreduce"),
    **{f"I{name.lower()}": name for name in ("Barrier", "Bcast", "Reduce", "Allreduce")},
    **{f"I{name.lower()}": name for name in ("Gather", "Scatter", "Allgather", "Allgatherv")},
}


def unsupported_words(name: str) -> str:
    """That the runtime has no such method, and what to use for it."""
    known = sorted(n for n in STARTS | BLOCKING if not n.startswith("local_"))
    advice = f"use {_INSTEAD[name]}" if name in _INSTEAD else f"it has {', '.join(known)}"
    return f"{name} {_NOT_SUPPORTED}; {advice}"


NOT_IN_MPI = {
    **dict.fromkeys(("ANY_SOURCE", "ANY_TAG", "PROC_NULL", "IN_PLACE"), _NOT_SUPPORTED),
    "COMM_SELF": _NOT_SUPPORTED,
    **dict.fromkeys(("Init", "Init_thread", "Finalize"), "is done by the runtime; remove it"),
}
"""Attributes of the module ``MPI`` that a program may not have, and why."""

MPI = "mpi4py.MPI"

ORDINARY = "runner.mate.ordinary"
"""What stands for the runtime in an ordinary program."""

CONTAINER_METHODS = frozenset(dir(dict)) | frozenset(dir(list)) | frozenset(dir(set))
"""A method of one's own with such a name cannot be told from these by its name alone."""
