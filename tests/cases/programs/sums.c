/* Non-blocking sums in place, each of them checked. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size, bad = 0, total;
    double right = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int r = 1; r < size; r++)
        right += 1.0 / r;
    for (int i = 0; i < 500; i++) {
        double values[2] = { rank, rank ? 1.0 / rank : 0 };
        MPI_Request request;
        MPI_Iallreduce(MPI_IN_PLACE, values, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        bad += values[0] != size * (size - 1) / 2 || fabs(values[1] - right) > 1e-9;
    }
    MPI_Reduce(&bad, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("result %s\n", total ? "WRONG" : "RIGHT");
    return MPI_Finalize();
}
