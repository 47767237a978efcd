/* A hybrid program: the sum of 1..N is shared by the ranks, and by the OpenMP threads of each.

   Every layout of ranks and threads solves the same problem.  Arguments: N in thousands, and the
   number of threads that the program chooses itself (0: it obeys the environment). */

#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int level, rank, size, threads = 0;
    long n = 1000L * (argc > 1 ? atol(argv[1]) : 20000), own = 0, total = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 2 && atoi(argv[2]) > 0)
        omp_set_num_threads(atoi(argv[2]));
    double start = MPI_Wtime();
    long first = n / size * rank, last = rank == size - 1 ? n : n / size * (rank + 1);
#pragma omp parallel reduction(+ : own)
    {
#pragma omp single
        threads = omp_get_num_threads();
#pragma omp for
        for (long i = first; i < last; i++) {
            long part = i + 1;
            __asm__ volatile("" : "+r"(part)); /* or the compiler finds the formula */
            own += part;
        }
    }
    MPI_Reduce(&own, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d ranks with %d threads\n", size, threads);
        printf("sum %s\n", total == n * (n + 1) / 2 ? "right" : "wrong");
        printf("time %.9f s\n", MPI_Wtime() - start);
    }
    return MPI_Finalize();
}
