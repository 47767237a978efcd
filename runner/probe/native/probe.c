/* One MPI operation, again and again: what runner.programs.micro does with mpi4py. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

static int is(const char *operation, const char *name)
{
    return strcmp(operation, name) == 0;
}

static void pingpong(char *buffer, int size)
{
    if (rank == 0) {
        MPI_Send(buffer, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(buffer, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(buffer, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buffer, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

/* One call; 0 if the operation is not known. */
static int once(const char *operation, char *mine, char *whole, int *counts, int *starts, int size)
{
    const MPI_Comm world = MPI_COMM_WORLD;
    const int doubles = size / (int)sizeof(double);

    if (is(operation, "pingpong"))
        pingpong(mine, size);
    else if (is(operation, "exchange"))
        MPI_Sendrecv(mine, size, MPI_BYTE, (rank + 1) % ranks, 0, whole, size, MPI_BYTE,
                     (rank + ranks - 1) % ranks, 0, world, MPI_STATUS_IGNORE);
    else if (is(operation, "barrier"))
        MPI_Barrier(world);
    else if (is(operation, "bcast"))
        MPI_Bcast(mine, size, MPI_BYTE, 0, world);
    else if (is(operation, "reduce"))
        MPI_Reduce(mine, whole, doubles, MPI_DOUBLE, MPI_SUM, 0, world);
    else if (is(operation, "allreduce"))
        MPI_Allreduce(mine, whole, doubles, MPI_DOUBLE, MPI_SUM, world);
    else if (is(operation, "scan"))
        MPI_Scan(mine, whole, doubles, MPI_DOUBLE, MPI_SUM, world);
    else if (is(operation, "reduce_scatter"))
        MPI_Reduce_scatter_block(mine, whole, doubles, MPI_DOUBLE, MPI_SUM, world);
    else if (is(operation, "gather"))
        MPI_Gather(mine, size, MPI_BYTE, whole, size, MPI_BYTE, 0, world);
    else if (is(operation, "scatter"))
        MPI_Scatter(mine, size, MPI_BYTE, whole, size, MPI_BYTE, 0, world);
    else if (is(operation, "allgather"))
        MPI_Allgather(mine, size, MPI_BYTE, whole, size, MPI_BYTE, world);
    else if (is(operation, "allgatherv"))
        MPI_Allgatherv(mine, size, MPI_BYTE, whole, counts, starts, MPI_BYTE, world);
    else if (is(operation, "alltoall"))
        MPI_Alltoall(mine, size, MPI_BYTE, whole, size, MPI_BYTE, world);
    else if (is(operation, "alltoallv"))
        MPI_Alltoallv(mine, counts, starts, MPI_BYTE, whole, counts, starts, MPI_BYTE, world);
    else
        return 0;
    return 1;
}

/* MPI from start to end, with ``count`` calls of an operation on ``size`` bytes (8 or more); the
   thread level is 0 (single) to 3 (multiple).  Returns the exit code. */
int probe(const char *operation, int size, int count, int level)
{
    const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                          MPI_THREAD_MULTIPLE};
    int provided, known = 1;

    MPI_Init_thread(NULL, NULL, levels[level], &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *mine = calloc(ranks, size), *whole = calloc(ranks, size);
    int *counts = calloc(ranks, sizeof(int)), *starts = calloc(ranks, sizeof(int));
    if (!mine || !whole || !counts || !starts)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < ranks; i++) {
        counts[i] = size;
        starts[i] = i * size;
    }
    for (int i = 0; i < count && known; i++)
        known = once(operation, mine, whole, counts, starts, size);
    MPI_Finalize();
    return known ? 0 : 2;
}
