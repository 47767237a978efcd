/* Collectives that take counts, each blocking, non-blocking and persistent.  The includer defines
   COUNT, PLACE (the type of displacements) and SIZED, which adds the ending of the name.

   `bytes` of a call are what the calling rank hands in (for a scatter, the block that it gets), so
   that they are known without asking anybody. */

#define BLOCKING(name, params, args, op, bytes) \
    WRAP(SIZED(name), params, args, op, trace_collective(mine, op, comm, bytes, 0))
#define NONBLOCKING(name, params, args, op, bytes) \
    WRAP(SIZED(name), (BARE params, MPI_Request *request), (BARE args, request), op, \
        trace_collective(mine, op, comm, bytes, 1))
#if AUTOTUNE_PERSISTENT_COLLECTIVES
#define PERSISTENT(name, params, args, op, bytes) \
    SET_UP(SIZED(JOIN(name, _init)), (BARE params, MPI_Info info, MPI_Request *request), \
        (BARE args, info, request), \
        trace_remember_collective(mine, *request, op, comm, bytes))
#else
#define PERSISTENT(name, params, args, op, bytes)
#endif
#define COLLECTIVE(name, iname, params, args, op, bytes) \
    BLOCKING(name, params, args, op, bytes) \
    NONBLOCKING(iname, params, args, op, bytes) \
    PERSISTENT(name, params, args, op, bytes)

/* Of an intercommunicator, ranks beside the root hand in nothing. */
#define ROOTED(bytes) (root == MPI_PROC_NULL ? 0 : (bytes))
#define SENT trace_bytes(sendcount, sendtype)
#define RECEIVED trace_bytes(recvcount, recvtype)
#define RANK trace_comm(mine, comm)->rank
#define PEERS trace_comm(mine, comm)->peers

#define SEND_BLOCK const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype
#define SEND_BLOCKS \
    const void *sendbuf, const COUNT sendcounts[], const PLACE sdispls[], MPI_Datatype sendtype
#define SEND_TYPES(type) \
    const void *sendbuf, const COUNT sendcounts[], const type sdispls[], \
        const MPI_Datatype sendtypes[]
#define RECV_BLOCK void *recvbuf, COUNT recvcount, MPI_Datatype recvtype
#define RECV_BLOCKS \
    void *recvbuf, const COUNT recvcounts[], const PLACE rdispls[], MPI_Datatype recvtype
#define RECV_TYPES(type) \
    void *recvbuf, const COUNT recvcounts[], const type rdispls[], const MPI_Datatype recvtypes[]
#define VECTOR const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype type, MPI_Op operation
#define VECTOR_ARGS sendbuf, recvbuf, count, type, operation

COLLECTIVE(Bcast, Ibcast,
    (void *buffer, COUNT count, MPI_Datatype type, int root, MPI_Comm comm),
    (buffer, count, type, root, comm), OP_BCAST, ROOTED(trace_bytes(count, type)))
COLLECTIVE(Scatter, Iscatter, (SEND_BLOCK, RECV_BLOCK, int root, MPI_Comm comm),
    (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm), OP_SCATTER,
    ROOTED(recvbuf == MPI_IN_PLACE || root == MPI_ROOT ? SENT : RECEIVED))
COLLECTIVE(Scatterv, Iscatterv, (SEND_BLOCKS, RECV_BLOCK, int root, MPI_Comm comm),
    (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcount, recvtype, root, comm), OP_SCATTER,
    root == MPI_PROC_NULL || root == MPI_ROOT
        ? 0
        : (recvbuf == MPI_IN_PLACE ? trace_bytes(sendcounts[RANK], sendtype) : RECEIVED))
COLLECTIVE(Gather, Igather, (SEND_BLOCK, RECV_BLOCK, int root, MPI_Comm comm),
    (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm), OP_GATHER,
    ROOTED(sendbuf == MPI_IN_PLACE || root == MPI_ROOT ? RECEIVED : SENT))
COLLECTIVE(Gatherv, Igatherv, (SEND_BLOCK, RECV_BLOCKS, int root, MPI_Comm comm),
    (sendbuf, sendcount, sendtype, recvbuf, recvcounts, rdispls, recvtype, root, comm), OP_GATHER,
    root == MPI_PROC_NULL || root == MPI_ROOT
        ? 0
        : (sendbuf == MPI_IN_PLACE ? trace_bytes(recvcounts[RANK], recvtype) : SENT))
COLLECTIVE(Allgather, Iallgather, (SEND_BLOCK, RECV_BLOCK, MPI_Comm comm),
    (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm), OP_ALLGATHER,
    sendbuf == MPI_IN_PLACE ? RECEIVED : SENT)
COLLECTIVE(Allgatherv, Iallgatherv, (SEND_BLOCK, RECV_BLOCKS, MPI_Comm comm),
    (sendbuf, sendcount, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm), OP_ALLGATHER,
    sendbuf == MPI_IN_PLACE ? trace_bytes(recvcounts[RANK], recvtype) : SENT)
COLLECTIVE(Alltoall, Ialltoall, (SEND_BLOCK, RECV_BLOCK, MPI_Comm comm),
    (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm), OP_ALLTOALL,
    (uint64_t)PEERS * (sendbuf == MPI_IN_PLACE ? RECEIVED : SENT))
COLLECTIVE(Alltoallv, Ialltoallv, (SEND_BLOCKS, RECV_BLOCKS, MPI_Comm comm),
    (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm),
    OP_ALLTOALL,
    sendbuf == MPI_IN_PLACE ? JOIN(sum_, COUNT)(recvcounts, PEERS, recvtype, NULL)
                            : JOIN(sum_, COUNT)(sendcounts, PEERS, sendtype, NULL))
COLLECTIVE(Alltoallw, Ialltoallw, (SEND_TYPES(PLACE), RECV_TYPES(PLACE), MPI_Comm comm),
    (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm),
    OP_ALLTOALL,
    sendbuf == MPI_IN_PLACE ? JOIN(sum_, COUNT)(recvcounts, PEERS, MPI_BYTE, recvtypes)
                            : JOIN(sum_, COUNT)(sendcounts, PEERS, MPI_BYTE, sendtypes))
COLLECTIVE(Reduce, Ireduce, (VECTOR, int root, MPI_Comm comm), (VECTOR_ARGS, root, comm),
    OP_REDUCE, ROOTED(trace_bytes(count, type)))
COLLECTIVE(Allreduce, Iallreduce, (VECTOR, MPI_Comm comm), (VECTOR_ARGS, comm), OP_ALLREDUCE,
    trace_bytes(count, type))
COLLECTIVE(Scan, Iscan, (VECTOR, MPI_Comm comm), (VECTOR_ARGS, comm), OP_SCAN,
    trace_bytes(count, type))
COLLECTIVE(Exscan, Iexscan, (VECTOR, MPI_Comm comm), (VECTOR_ARGS, comm), OP_SCAN,
    trace_bytes(count, type))
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, (VECTOR, MPI_Comm comm),
    (VECTOR_ARGS, comm), OP_REDUCE_SCATTER,
    (uint64_t)trace_comm(mine, comm)->size * trace_bytes(count, type))
COLLECTIVE(Reduce_scatter, Ireduce_scatter,
    (const void *sendbuf, void *recvbuf, const COUNT recvcounts[], MPI_Datatype type,
        MPI_Op operation, MPI_Comm comm),
    (sendbuf, recvbuf, recvcounts, type, operation, comm), OP_REDUCE_SCATTER,
    JOIN(sum_, COUNT)(recvcounts, trace_comm(mine, comm)->size, type, NULL))
COLLECTIVE(Neighbor_allgather, Ineighbor_allgather, (SEND_BLOCK, RECV_BLOCK, MPI_Comm comm),
    (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm), OP_NEIGHBOR, SENT)
COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv, (SEND_BLOCK, RECV_BLOCKS, MPI_Comm comm),
    (sendbuf, sendcount, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm), OP_NEIGHBOR,
    SENT)
COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall, (SEND_BLOCK, RECV_BLOCK, MPI_Comm comm),
    (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm), OP_NEIGHBOR,
    (uint64_t)trace_degree(mine, comm) * SENT)
COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv, (SEND_BLOCKS, RECV_BLOCKS, MPI_Comm comm),
    (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm),
    OP_NEIGHBOR, JOIN(sum_, COUNT)(sendcounts, trace_degree(mine, comm), sendtype, NULL))
COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw,
    (SEND_TYPES(MPI_Aint), RECV_TYPES(MPI_Aint), MPI_Comm comm),
    (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm),
    OP_NEIGHBOR, JOIN(sum_, COUNT)(sendcounts, trace_degree(mine, comm), MPI_BYTE, sendtypes))

#undef BLOCKING
#undef NONBLOCKING
#undef PERSISTENT
#undef COLLECTIVE
