/* 1-D wave equation on a ring; border points go by Sendrecv.
   Arguments: points of a rank, steps. With a Courant number of 1 the wave moves by one point in a
   step; its values are whole numbers, so it stays the same to the last bit. */
#include "report.h"

static double form(long place, long points) {
    return (double)((place % points + points) % points * 7919 % 1000);
}

int main(int count, char **words) {
    begin(&count, &words);
    int n = argument(count, words, 1), steps = argument(count, words, 2), wrong = 0;
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    long first = (long)rank * n, all = (long)ranks * n;
    double *before = memory(sizeof(double) * (n + 2)), *now = memory(sizeof(double) * (n + 2));
    for (int i = 1; i <= n; i++) {
        before[i] = form(first + i + 1, all);
        now[i] = form(first + i, all);
    }
    start_clock();
    for (int step = 0; step < steps; step++) {
        MPI_Sendrecv(now + 1, 1, MPI_DOUBLE, left, 0, now + n + 1, 1, MPI_DOUBLE, right, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(now + n, 1, MPI_DOUBLE, right, 1, now, 1, MPI_DOUBLE, left, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 1; i <= n; i++) before[i] = now[i - 1] + now[i + 1] - before[i];
        double *swap = before;
        before = now, now = swap;
    }
    double seconds = stop_clock();
    for (int i = 1; i <= n; i++) wrong |= now[i] != form(first + i - steps, all);
    return finish(seconds, wrong);
}
