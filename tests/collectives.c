/* The collectives that components of Open MPI serve, on messages of several sizes, with results that
   are checked.  "canary": only a barrier and a broadcast. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size, wrong;

static void check(int right, const char *what)
{
    if (!right && !wrong++)
        fprintf(stderr, "rank %d: wrong result of %s\n", rank, what);
}

static void all(int count, int root)
{
    double *mine = malloc(sizeof *mine * count), *got = malloc(sizeof *got * count * size);
    double *every = malloc(sizeof *every * count * size);
    for (int at = 0; at < count; at++)
        mine[at] = at + rank;
    double ranks = size * (size - 1) / 2.0, last = count - 1;
    MPI_Allreduce(mine, got, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    check(got[0] == ranks && got[count - 1] == size * last + ranks, "allreduce");
    MPI_Reduce(mine, got, count, MPI_DOUBLE, MPI_MAX, root, MPI_COMM_WORLD);
    check(rank != root || (got[0] == size - 1 && got[count - 1] == last + size - 1), "reduce");
    for (int at = 0; at < count; at++)
        got[at] = rank == root ? at : -1;
    MPI_Bcast(got, count, MPI_DOUBLE, root, MPI_COMM_WORLD);
    check(got[0] == 0 && got[count - 1] == last, "bcast");
    MPI_Allgather(mine, count, MPI_DOUBLE, every, count, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int at = 0; at < size; at++)
        check(every[at * count] == at && every[(at + 1) * count - 1] == last + at, "allgather");
    MPI_Alltoall(every, count, MPI_DOUBLE, got, count, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int at = 0; at < size; at++)
        check(got[at * count] == rank && got[(at + 1) * count - 1] == last + rank, "alltoall");
    MPI_Gather(mine, count, MPI_DOUBLE, got, count, MPI_DOUBLE, root, MPI_COMM_WORLD);
    MPI_Scatter(got, count, MPI_DOUBLE, mine, count, MPI_DOUBLE, root, MPI_COMM_WORLD);
    check(mine[0] == rank && mine[count - 1] == last + rank, "gather and scatter");
    MPI_Barrier(MPI_COMM_WORLD);
    free(mine);
    free(got);
    free(every);
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (count > 1) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    } else
        for (int at = 1; at <= 300000; at = at < 1000 ? at * 10 : at * 17)
            for (int again = 0; again < 3; again++)
                all(at, again % size);
    int code = wrong;
    MPI_Allreduce(MPI_IN_PLACE, &code, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && !code)
        printf("right\n");
    MPI_Finalize();
    return code != 0;
}
