/* Counts and times of one process's MPI calls; no event is kept.

   The library is preloaded.  It defines both names of every call that it counts, MPI_X and PMPI_X:
   Fortran bindings call the C functions by their PMPI names, so both have to lead here.  A call
   inside a traced call (a binding, another profiling tool, the library itself) is not counted
   again: see trace_enter. */

#ifndef AUTOTUNE_TRACE_H
#define AUTOTUNE_TRACE_H

#include "rounds.h"
#include "rows.h"

#include <mpi.h>
#include <stdint.h>
#include <time.h>

#define TRACE_FORMAT "autotune-trace 1"
#define TRACE_BINS 26

/* Operation and its name in the file; the classes are made of them by the reader. */
#define TRACE_OPS(X) \
    X(SEND, "send") X(RECV, "recv") X(WAIT, "wait") X(BARRIER, "barrier") \
    X(BCAST, "bcast") X(SCATTER, "scatter") X(REDUCE, "reduce") X(GATHER, "gather") \
    X(ALLGATHER, "allgather") X(ALLREDUCE, "allreduce") X(ALLTOALL, "alltoall") \
    X(REDUCE_SCATTER, "reduce_scatter") X(SCAN, "scan") X(NEIGHBOR, "neighbor") \
    X(RMA, "rma") X(OTHER, "other")

enum trace_op {
#define X(id, name) OP_##id,
    TRACE_OPS(X)
#undef X
    OPS
};

/* timed: the calls while MPI_Pcontrol had counting on. */
struct op_counts {
    uint64_t calls, nonblocking, bytes, comm_sizes, ns, timed;
};

/* A communicator as far as counting needs it.  world: rank there -> rank in MPI_COMM_WORLD, or -1
   outside of it; NULL where they are the same.  peers: the other group of an intercommunicator.
   far: not all of its processes are on this node. */
struct comm_info {
    uint64_t key;
    int rank, size, peers, degree, far;
    int *world;
    struct comm_info *next;
};

#define COMM_CACHE 8

/* What one thread counted; every thread has its own, so that none waits for another. */
struct counts {
    struct op_counts op[OPS];
    struct rows rows;
    struct rounds rounds;
    uint64_t spent; /* nanoseconds in the call that was left last */
    uint64_t p2p_sizes[TRACE_BINS], coll_sizes[TRACE_BINS];
    uint64_t outside;
    uint64_t (*to)[2]; /* for each rank of MPI_COMM_WORLD: messages, bytes */
    int depth;
    unsigned generation;
    const struct comm_info *cache[COMM_CACHE];
    struct counts *next;
};

/* What a start of a persistent request sends or begins. */
struct started {
    enum trace_op op;
    int to; /* rank in MPI_COMM_WORLD, -1 outside; only for OP_SEND */
    int comm_size, far; /* only for collectives */
    uint64_t bytes;
};

/* The implementation behind a name; ends the process with a message where there is none. */
void *trace_real(const char *name);

/* Ends the process with a message. */
void trace_fail(const char *what, const char *name);

/* An operation was created; commute as the program declares it. */
void trace_operation(int commute);

/* Other processes were started, of which nothing is seen. */
void trace_spawn(void);

/* Tells all ranks the node of each; host: the name of this rank's.  Collective. */
void trace_exchange_nodes(const char *host, int rank, int size);

/* Whether a rank of MPI_COMM_WORLD, or a process outside of it (-1), is on another node. */
int trace_far(int world_rank);

/* This thread's counts, or NULL where this call must not be counted.  Each non-NULL answer is
   followed by one trace_leave. */
struct counts *trace_enter(void);

/* Whether the program is in its timed part; 1 in a program that marks none. */
extern int trace_timed;

/* What MPI_Pcontrol says: 1 begins the timed part, 0 or less ends it. */
void trace_mark(int level);

static inline uint64_t trace_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What counts the call afterwards adds `spent` to exactly one row of the same operation. */
static inline void trace_leave(struct counts *mine, enum trace_op op, uint64_t began)
{
    uint64_t left = trace_now();
    mine->spent = left - began;
    rounds_called(&mine->rounds, began, left);
    mine->op[op].ns += mine->spent;
    mine->op[op].calls++;
    mine->op[op].timed += (uint64_t)trace_timed;
    mine->depth--;
}

static inline uint64_t trace_bytes(int64_t count, MPI_Datatype type)
{
    int size = 0;
    /* Where nothing is sent the type need not be valid. */
    if (count <= 0)
        return 0;
    PMPI_Type_size(type, &size);
    return size > 0 ? (uint64_t)count * (uint64_t)size : 0;
}

const struct comm_info *trace_comm(struct counts *mine, MPI_Comm comm);
int trace_degree(struct counts *mine, MPI_Comm comm);
void trace_forget_comm(MPI_Comm comm);

/* A call without size and partners; amount: bytes, or for OP_WAIT the requests handed to it. */
void trace_plain(struct counts *mine, enum trace_op op, uint64_t amount, int nonblocking);
void trace_transfer(struct counts *mine, uint64_t bytes);
void trace_message(struct counts *mine, MPI_Comm comm, int to, uint64_t bytes, int nonblocking);
void trace_collective(
    struct counts *mine, enum trace_op op, MPI_Comm comm, uint64_t bytes, int nonblocking);

void trace_remember(MPI_Request request, const struct started *what);
void trace_remember_message(struct counts *mine, MPI_Request request, MPI_Comm comm, int to,
    uint64_t bytes);
void trace_remember_collective(struct counts *mine, MPI_Request request, enum trace_op op,
    MPI_Comm comm, uint64_t bytes);
void trace_forget_request(MPI_Request request);
/* What was remembered of a request; 0 where nothing was. */
int trace_recall(MPI_Request request, struct started *what);
void trace_start(struct counts *mine, const MPI_Request requests[], int count);

void trace_begin(void);
void trace_end(void);

#endif
