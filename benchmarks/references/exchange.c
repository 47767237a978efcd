/* Rounds in which each rank sends a block to its right neighbour and gets one from its left.
   Arguments: bytes, rounds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    int rank, size;
    int bytes = argc > 1 ? atoi(argv[1]) : 65536, rounds = argc > 2 ? atoi(argv[2]) : 4000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *out = calloc(1, bytes), *in = calloc(1, bytes);
    int right = (rank + 1) % size, left = (rank + size - 1) % size, wrong = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < rounds; i++) {
        MPI_Request both[2];
        out[0] = (char)i;
        MPI_Irecv(in, bytes, MPI_CHAR, left, 0, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(out, bytes, MPI_CHAR, right, 0, MPI_COMM_WORLD, &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        wrong |= in[0] != (char)i;
    }
    double mine = MPI_Wtime() - start, all;
    MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s\ntime %g s\n", wrong ? "WRONG" : "VERIFIED", all);
    MPI_Finalize();
    return wrong;
}
