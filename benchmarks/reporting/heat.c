/* 2-D heat equation with explicit steps; rows are shared out, border rows go by Isend and Irecv.
   Arguments: rows and columns, steps. The start is a sine wave, which only shrinks. */
#include "report.h"
#include <math.h>

int main(int count, char **words) {
    begin(&count, &words);
    int n = argument(count, words, 1), steps = argument(count, words, 2);
    if (n % ranks) refuse("the ranks must divide the rows");
    int rows = n / ranks, wide = n + 2, wrong = 0;
    int up = rank ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    double *old = memory(sizeof(double) * wide * (rows + 2));
    double *new = memory(sizeof(double) * wide * (rows + 2)), angle = acos(-1.0) / (n + 1);
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= n; j++)
            old[i * wide + j] = sin(angle * (rank * rows + i)) * sin(angle * j);
    start_clock();
    for (int step = 0; step < steps; step++) {
        MPI_Request r[4];
        MPI_Irecv(old, wide, MPI_DOUBLE, up, 0, MPI_COMM_WORLD, &r[0]);
        MPI_Irecv(old + (rows + 1) * wide, wide, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &r[1]);
        MPI_Isend(old + wide, wide, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &r[2]);
        MPI_Isend(old + rows * wide, wide, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, &r[3]);
        MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
        for (int i = 1; i <= rows; i++) {
            const double *at = old + i * wide;
            for (int j = 1; j <= n; j++)
                new[i * wide + j] =
                    at[j] + 0.2 * (at[j - 1] + at[j + 1] + at[j - wide] + at[j + wide] - 4 * at[j]);
        }
        double *swap = old;
        old = new, new = swap;
    }
    double seconds = stop_clock(), factor = pow(1 - 0.8 * (1 - cos(angle)), steps);
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= n; j++) {
            double right = factor * sin(angle * (rank * rows + i)) * sin(angle * j);
            wrong |= !(fabs(old[i * wide + j] - right) < 1e-9);
        }
    return finish(seconds, wrong);
}
