/* Messages of 8 bytes in C: batches of nonblocking sends and receives, as benchmarks.mate_messages.
 *
 *   mpirun -n 2 messages ROUNDS REPEATS
 *
 * One JSON line: microseconds per message (one sent, one received) of each repeat, to the other
 * process ("between") and to the process itself ("itself").
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 16, WARM = 10 };

static void exchange(int other, long rounds)
{
    double sent = 0, got[BATCH];
    MPI_Request requests[2 * BATCH];
    for (long i = 0; i < rounds; i++) {
        for (int n = 0; n < BATCH; n++)
            MPI_Irecv(&got[n], 1, MPI_DOUBLE, other, n, MPI_COMM_WORLD, &requests[n]);
        for (int n = 0; n < BATCH; n++)
            MPI_Isend(&sent, 1, MPI_DOUBLE, other, n, MPI_COMM_WORLD, &requests[BATCH + n]);
        MPI_Waitall(2 * BATCH, requests, MPI_STATUSES_IGNORE);
    }
}

static void print_repeats(const char *name, int other, int rank, long rounds, long repeats)
{
    if (rank == 0)
        printf("\"%s\": [", name);
    for (long n = 0; n < repeats; n++) {
        exchange(other, rounds / WARM + 1);
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        exchange(other, rounds);
        double spent = MPI_Wtime() - begin;
        if (rank == 0)
            printf("%s%.6g", n ? ", " : "", spent * 1e6 / rounds / BATCH);
    }
    if (rank == 0)
        printf("]");
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 3 || size != 2) {
        fprintf(stderr, "usage: mpirun -n 2 messages ROUNDS REPEATS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    long rounds = atol(argv[1]), repeats = atol(argv[2]);
    if (rank == 0)
        printf("{");
    print_repeats("between", 1 - rank, rank, rounds, repeats);
    if (rank == 0)
        printf(", ");
    print_repeats("itself", rank, rank, rounds, repeats);
    if (rank == 0)
        printf("}\n");
    return MPI_Finalize();
}
