/* Starts one more rank and computes with it. */
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    MPI_Comm other, all;
    int rank, size, high;
    double one = 1, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&other);
    high = other != MPI_COMM_NULL;
    if (!high)
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other,
            MPI_ERRCODES_IGNORE);
    MPI_Intercomm_merge(other, high, &all);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, all);
    if (rank == 0)
        printf("merged %d sum %g\n", size, sum);
    return MPI_Finalize();
}
