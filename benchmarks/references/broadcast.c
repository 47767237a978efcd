/* Rounds of one broadcast, each from another root, and some work on what came.
   Arguments: bytes, rounds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    int rank, size;
    int bytes = argc > 1 ? atoi(argv[1]) : 262144, rounds = argc > 2 ? atoi(argv[2]) : 1500;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int words = bytes / 4, *data = malloc(4L * words);
    long sum = 0;
    for (int i = 0; i < words; i++)
        data[i] = rank;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < rounds; i++) {
        int root = i % size;
        if (rank == root)
            for (int k = 0; k < words; k += 64)
                data[k] = i;
        MPI_Bcast(data, words, MPI_INT, root, MPI_COMM_WORLD);
        for (int k = 0; k < words; k += 64)
            sum += data[k];
    }
    double mine = MPI_Wtime() - start, all;
    long wanted = 0, good, right;
    for (int i = 0; i < rounds; i++)
        wanted += (long)i * ((words + 63) / 64);
    good = sum == wanted;
    MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&good, &right, 1, MPI_LONG, MPI_MIN, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s\ntime %g s\n", right ? "VERIFIED" : "WRONG", all);
    MPI_Finalize();
    return !good;
}
