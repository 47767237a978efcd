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
NOT_IN_MPI = {
    **dict.fromkeys(("ANY_SOURCE", "ANY_TAG", "PROC_NULL", "IN_PLACE"), _NOT_SUPPORTED),
    "COMM_SELF": _NOT_SUPPORTED,
    **dict.fromkeys(("Init", "Init_thread", "Finalize"), "is done by the runtime: take it out"),
}
"""Attributes of the module ``MPI`` that a program may not have, and why."""

MPI = "mpi4py.MPI"

ORDINARY = "runner.mate.ordinary"
"""What stands for the runtime in an ordinary program."""

CONTAINER_METHODS = frozenset(dir(dict)) | frozenset(dir(list)) | frozenset(dir(set))
"""A method of one's own with such a name cannot be told from these by its name alone."""
