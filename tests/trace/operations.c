/* Every kind of call that is counted, on 4 ranks, in known numbers (test_native.py). */

#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, size;

/* To the next rank: 1 blocking of 4 bytes, 2 Isends of 8, 1 synchronous, 3 persistent of 16, a
   combined one of 20; and one to nobody, which is no message. */
static void messages(void)
{
    double out[8] = {0}, in[8];
    MPI_Request request[2];
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Irecv(in, 1, MPI_INT, before, 0, MPI_COMM_WORLD, request);
    MPI_Send(out, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    for (int at = 0; at < 2; at++) {
        MPI_Isend(out, 1, MPI_DOUBLE, next, 0, MPI_COMM_WORLD, request);
        MPI_Recv(in, 1, MPI_DOUBLE, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Waitall(1, request, MPI_STATUSES_IGNORE);
    }
    MPI_Irecv(in, 0, MPI_INT, before, 0, MPI_COMM_WORLD, request);
    MPI_Ssend(out, 0, MPI_INT, next, 0, MPI_COMM_WORLD);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    MPI_Send_init(out, 2, MPI_DOUBLE, next, 0, MPI_COMM_WORLD, request);
    MPI_Recv_init(in, 2, MPI_DOUBLE, before, 0, MPI_COMM_WORLD, request + 1);
    for (int at = 0; at < 3; at++) {
        if (at)
            MPI_Startall(2, request);
        else {
            MPI_Start(request);
            MPI_Start(request + 1);
        }
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(request);
    MPI_Request_free(request + 1);
    MPI_Sendrecv(out, 5, MPI_INT, next, 0, in, 5, MPI_INT, before, 0, MPI_COMM_WORLD,
        MPI_STATUS_IGNORE);
    MPI_Send(out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
}

/* In a communicator of every second rank, counted backwards; each rank sends to itself there too,
   by the name that Fortran bindings use. */
static void communicators(void)
{
    for (int at = 0; at < 3; at++) {
        MPI_Comm half;
        int value = 0, there;
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
        MPI_Comm_rank(half, &there);
        PMPI_Sendrecv_replace(&value, 1, MPI_INT, 1 - there, 0, 1 - there, 0, half,
            MPI_STATUS_IGNORE);
        PMPI_Bcast(&value, 1, MPI_INT, 0, half);
        MPI_Comm_free(&half);
    }
}

static void collectives(void)
{
    double one[4] = {0}, all[16];
    int counts[4] = {1, 2, 3, 4}, places[4] = {0, 1, 3, 6}, same[4] = {1, 1, 1, 1};
    MPI_Request request;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Barrier(comm);
    MPI_Ibarrier(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Pcontrol(1);
    MPI_Bcast(one, 4, MPI_DOUBLE, 0, comm);
    MPI_Pcontrol(2); /* flushes the buffers of a profiling library */
    MPI_Ibcast(one, 2, MPI_DOUBLE, 0, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Pcontrol(0);
    MPI_Scatter(all, 2, MPI_DOUBLE, one, 2, MPI_DOUBLE, 0, comm);
    if (rank)
        MPI_Scatterv(NULL, NULL, NULL, MPI_DATATYPE_NULL, one, counts[rank], MPI_DOUBLE, 0, comm);
    else
        MPI_Scatterv(all, counts, places, MPI_DOUBLE, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 0, comm);
    MPI_Reduce(one, all, 3, MPI_DOUBLE, MPI_SUM, 0, comm);
    MPI_Gather(one, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, comm);
    MPI_Gatherv(one, counts[rank], MPI_DOUBLE, all, counts, places, MPI_DOUBLE, 0, comm);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 2, MPI_DOUBLE, comm);
    MPI_Allreduce(one, all, 4, MPI_DOUBLE, MPI_MAX, comm);
    MPI_Alltoall(all, 1, MPI_DOUBLE, all + 8, 1, MPI_DOUBLE, comm);
    memset(all, 0, sizeof all);
    MPI_Alltoallv(all, same, places, MPI_DOUBLE, all + 8, same, places, MPI_DOUBLE, comm);
    MPI_Reduce_scatter(all, one, counts, MPI_INT, MPI_SUM, comm);
    MPI_Reduce_scatter_block(all, one, 2, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Scan(one, all, 1, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Exscan(one, all, 2, MPI_DOUBLE, MPI_SUM, comm);
}

static void neighbourhood(void)
{
    MPI_Comm ring;
    int extent[1] = {size}, around[1] = {1};
    double out[2] = {0}, in[2];
    MPI_Cart_create(MPI_COMM_WORLD, 1, extent, around, 0, &ring);
    MPI_Neighbor_alltoall(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, ring);
    MPI_Comm_free(&ring);
}

static void *self_message(void *unused)
{
    int value = 0;
    MPI_Sendrecv_replace(&value, 1, MPI_INT, rank, 1, rank, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    return unused;
}

/* The second thread may only talk to itself: in COMM_SELF every rank is 0. */
static void threads(void)
{
    pthread_t thread;
    int saved = rank;
    rank = 0;
    pthread_create(&thread, NULL, self_message, NULL);
    pthread_join(thread, NULL);
    rank = saved;
}

static void one_sided(void)
{
    MPI_Win window;
    int value = 1, there = 0;
    MPI_Win_create(&there, sizeof there, sizeof there, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

/* A persistent allreduce of 8 bytes, started twice, where the library has such requests. */
static void persistent(void)
{
    double in = 0, out;
    MPI_Request request;
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
    MPI_Allreduce_init(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int at = 0; at < 2; at++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
#else
    for (int at = 0; at < 2; at++) {
        MPI_Iallreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
#endif
}

int main(int count, char **words)
{
    int provided;
    MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    messages();
    communicators();
    collectives();
    neighbourhood();
    threads();
    MPI_Pcontrol(1);
    persistent();
    MPI_Pcontrol(-1);
    one_sided();
    if (fork() == 0)
        exit(0);
    wait(NULL);
    MPI_Finalize();
    return 0;
}
