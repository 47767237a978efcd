/* Reads how often it computes from standard input. */
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, steps = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0 && scanf("%d", &steps) != 1) {
        fprintf(stderr, "error: no namelist control\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Bcast(&steps, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("steps %d\n", steps);
    return MPI_Finalize();
}
