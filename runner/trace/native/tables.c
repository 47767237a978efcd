/* What is known about communicators and persistent requests, by their handles. */

#include "trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct comm_info *comms;
/* Counts up with every freed communicator: what the threads keep in their caches is void then. */
static unsigned generation;

/* Handles are pointers in some libraries and numbers in others. */
static uint64_t key_of(const void *handle, size_t size)
{
    uint64_t key = 0;
    memcpy(&key, handle, size);
    return key;
}

static int *world_ranks(MPI_Group group, int size)
{
    MPI_Group everybody;
    int result, *there = malloc((size_t)size * 2 * sizeof *there);
    if (!there)
        return NULL;
    PMPI_Comm_group(MPI_COMM_WORLD, &everybody);
    for (int at = 0; at < size; at++)
        there[size + at] = at;
    PMPI_Group_translate_ranks(group, size, there + size, everybody, there);
    PMPI_Group_compare(group, everybody, &result);
    PMPI_Group_free(&everybody);
    if (result == MPI_IDENT) {
        free(there);
        return NULL;
    }
    for (int at = 0; at < size; at++)
        if (there[at] == MPI_UNDEFINED)
            there[at] = -1;
    return there;
}

static int degree_of(MPI_Comm comm, int rank)
{
    int kind, in, out = 0, weighted;
    PMPI_Topo_test(comm, &kind);
    if (kind == MPI_CART) {
        PMPI_Cartdim_get(comm, &out);
        out *= 2;
    } else if (kind == MPI_GRAPH) {
        PMPI_Graph_neighbors_count(comm, rank, &out);
    } else if (kind == MPI_DIST_GRAPH) {
        PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    }
    return out;
}

/* The ranks in MPI_COMM_WORLD; notes whether one of them is far. */
static int *describe_group(struct comm_info *info, MPI_Group group, int size)
{
    int *world = world_ranks(group, size);
    for (int at = 0; at < size && !info->far; at++)
        info->far = trace_far(world ? world[at] : at);
    return world;
}

static struct comm_info *describe(MPI_Comm comm, uint64_t key)
{
    struct comm_info *info = calloc(1, sizeof *info);
    MPI_Group group;
    int inter = 0;
    if (!info)
        abort();
    info->key = key;
    PMPI_Comm_rank(comm, &info->rank);
    PMPI_Comm_size(comm, &info->size);
    PMPI_Comm_test_inter(comm, &inter);
    info->peers = info->size;
    if (inter) {
        PMPI_Comm_group(comm, &group);
        free(describe_group(info, group, info->size));
        PMPI_Group_free(&group);
        PMPI_Comm_remote_size(comm, &info->peers);
        PMPI_Comm_remote_group(comm, &group);
    } else {
        PMPI_Comm_group(comm, &group);
        info->degree = degree_of(comm, info->rank);
    }
    info->world = describe_group(info, group, info->peers);
    PMPI_Group_free(&group);
    return info;
}

const struct comm_info *trace_comm(struct counts *mine, MPI_Comm comm)
{
    uint64_t key = key_of(&comm, sizeof comm);
    unsigned now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    /* Handles that are pointers differ in their upper bits, small numbers in their lowest. */
    unsigned place = (unsigned)((key ^ (key >> 6) ^ (key >> 9)) % COMM_CACHE);
    if (mine->generation != now) {
        memset(mine->cache, 0, sizeof mine->cache);
        mine->generation = now;
    }
    const struct comm_info *cached = mine->cache[place];
    if (cached && cached->key == key)
        return cached;
    pthread_mutex_lock(&lock);
    struct comm_info *info = comms;
    while (info && info->key != key)
        info = info->next;
    if (!info) {
        info = describe(comm, key);
        info->next = comms;
        comms = info;
    }
    pthread_mutex_unlock(&lock);
    mine->cache[place] = info;
    return info;
}

int trace_degree(struct counts *mine, MPI_Comm comm)
{
    return trace_comm(mine, comm)->degree;
}

void trace_forget_comm(MPI_Comm comm)
{
    uint64_t key = key_of(&comm, sizeof comm);
    pthread_mutex_lock(&lock);
    for (struct comm_info **link = &comms; *link; link = &(*link)->next)
        if ((*link)->key == key) {
            struct comm_info *gone = *link;
            *link = gone->next;
            __atomic_add_fetch(&generation, 1, __ATOMIC_RELEASE);
            free(gone->world);
            free(gone);
            break;
        }
    pthread_mutex_unlock(&lock);
}

/* Persistent requests: chains, because programs have few and start them often. */
#define CHAINS 1024
struct known {
    uint64_t key;
    struct started what;
    struct known *next;
};
static struct known *chains[CHAINS];

static struct known **find(uint64_t key)
{
    struct known **link = &chains[(key ^ (key >> 7) ^ (key >> 14)) % CHAINS];
    while (*link && (*link)->key != key)
        link = &(*link)->next;
    return link;
}

void trace_remember(MPI_Request request, const struct started *what)
{
    uint64_t key = key_of(&request, sizeof request);
    pthread_mutex_lock(&lock);
    struct known **link = find(key);
    if (!*link && (*link = calloc(1, sizeof **link)))
        (*link)->key = key;
    if (*link)
        (*link)->what = *what;
    pthread_mutex_unlock(&lock);
}

void trace_forget_request(MPI_Request request)
{
    pthread_mutex_lock(&lock);
    struct known **link = find(key_of(&request, sizeof request)), *gone = *link;
    if (gone) {
        *link = gone->next;
        free(gone);
    }
    pthread_mutex_unlock(&lock);
}

int trace_recall(MPI_Request request, struct started *what)
{
    pthread_mutex_lock(&lock);
    struct known *found = *find(key_of(&request, sizeof request));
    if (found)
        *what = found->what;
    pthread_mutex_unlock(&lock);
    return found != NULL;
}
