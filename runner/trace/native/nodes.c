/* Which ranks are on the node of this process. */

#include "trace.h"

#include <stdlib.h>

static uint64_t *nodes; /* for each rank: a hash of the name of its node */
static int own;         /* the rank of this process */

/* 64-bit FNV-1a. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

void trace_exchange_nodes(const char *host, int rank, int size)
{
    uint64_t mine = hash_of(host);
    own = rank;
    free(nodes);
    nodes = calloc((size_t)size, sizeof *nodes);
    if (!nodes)
        trace_fail("no memory for", "the nodes of the ranks");
    PMPI_Allgather(&mine, 1, MPI_UINT64_T, nodes, 1, MPI_UINT64_T, MPI_COMM_WORLD);
}

int trace_far(int world_rank)
{
    return world_rank < 0 || nodes[world_rank] != nodes[own];
}
