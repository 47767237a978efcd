/* A hybrid program of many short steps: a parallel loop, then an allreduce.  Arguments: the number of
   steps, and the length of the loop in thousands. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, size, steps = argc > 1 ? atoi(argv[1]) : 100;
    long length = 1000L * (argc > 2 ? atol(argv[2]) : 200);
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int step = 0; step < steps; step++) {
        double own = 0, all = 0;
#pragma omp parallel for reduction(+ : own)
        for (long i = 0; i < length; i++)
            own += 1.0 / (1.0 + (double)(i + step));
        MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        sum += all;
    }
    if (rank == 0)
        printf("%d ranks, sum %g\n", size, sum / size);
    return MPI_Finalize();
}
