/* Rank 0 prints a file. */
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, c;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (rank == 0 && !file)
        MPI_Abort(MPI_COMM_WORLD, 3);
    while (rank == 0 && (c = fgetc(file)) != EOF)
        putchar(c);
    return MPI_Finalize();
}
