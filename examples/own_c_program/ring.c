/* Passes a message of BYTES around the ring of all ranks, ROUNDS times; rank 0 prints the time. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int bytes = argc > 1 ? atoi(argv[1]) : 65536, rounds = argc > 2 ? atoi(argv[2]) : 2000;
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *out = calloc(bytes, 1), *in = calloc(bytes, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int round = 0; round < rounds; round++)
        MPI_Sendrecv(out, bytes, MPI_CHAR, (rank + 1) % ranks, 0, in, bytes, MPI_CHAR,
                     (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0)
        printf("ring time: %.6f s\n", MPI_Wtime() - start);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
