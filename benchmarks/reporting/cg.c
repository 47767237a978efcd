/* Conjugate gradients for the 5-point Laplacian with rows shared out: two Allreduce of one number
   in an iteration. Arguments: rows and columns, iterations, repetitions.
   The right side is that of a solution of ones; the iterations must be enough to find it. */
#include "report.h"
#include <math.h>
#include <string.h>

static int n, rows, wide;

static double sum(const double *x, const double *y) {
    double mine = 0, all;
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= n; j++) mine += x[i * wide + j] * y[i * wide + j];
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void multiply(double *x, double *result) {
    int up = rank ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(x + wide, wide, MPI_DOUBLE, up, 0, x + (rows + 1) * wide, wide, MPI_DOUBLE, down,
                 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(x + rows * wide, wide, MPI_DOUBLE, down, 1, x, wide, MPI_DOUBLE, up, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 1; i <= rows; i++) {
        const double *at = x + i * wide;
        for (int j = 1; j <= n; j++)
            result[i * wide + j] = 4 * at[j] - at[j - 1] - at[j + 1] - at[j - wide] - at[j + wide];
    }
}

int main(int count, char **words) {
    begin(&count, &words);
    n = argument(count, words, 1);
    int iterations = argument(count, words, 2), repetitions = argument(count, words, 3), wrong = 0;
    if (n % ranks) refuse("the ranks must divide the rows");
    rows = n / ranks, wide = n + 2;
    size_t bytes = sizeof(double) * wide * (rows + 2);
    double *x = memory(bytes), *r = memory(bytes), *p = memory(bytes), *q = memory(bytes);
    double *right = memory(bytes);
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= n; j++) x[i * wide + j] = 1;
    multiply(x, right);
    start_clock();
    for (int repetition = 0; repetition < repetitions; repetition++) {
        memset(x, 0, bytes);
        memcpy(r, right, bytes);
        memcpy(p, right, bytes);
        double rho = sum(r, r);
        for (int k = 0; k < iterations && rho > 1e-20; k++) {
            multiply(p, q);
            double alpha = rho / sum(p, q), before = rho;
            for (int i = 1; i <= rows; i++)
                for (int j = 1; j <= n; j++) {
                    x[i * wide + j] += alpha * p[i * wide + j];
                    r[i * wide + j] -= alpha * q[i * wide + j];
                }
            rho = sum(r, r);
            for (int i = 1; i <= rows; i++)
                for (int j = 1; j <= n; j++)
                    p[i * wide + j] = r[i * wide + j] + rho / before * p[i * wide + j];
        }
    }
    double seconds = stop_clock();
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= n; j++) wrong |= !(fabs(x[i * wide + j] - 1) < 1e-6);
    return finish(seconds, wrong);
}
