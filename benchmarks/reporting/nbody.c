/* Bodies that attract each other; the positions go round a ring of ranks.
   Arguments: bodies of a rank, steps. The sum of all forces must be 0. */
#include "report.h"
#include <math.h>
#include <string.h>

int main(int count, char **words) {
    begin(&count, &words);
    int n = argument(count, words, 1), steps = argument(count, words, 2), wrong = 0;
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    double *at = memory(24 * (size_t)n), *speed = memory(24 * (size_t)n);
    double *force = memory(24 * (size_t)n), *guests = memory(24 * (size_t)n);
    uint64_t state = rank + 1;
    for (int i = 0; i < 3 * n; i++) at[i] = (double)(random_bits(&state) >> 11) * 0x1p-53;
    start_clock();
    for (int step = 0; step < steps; step++) {
        memset(force, 0, 24 * (size_t)n);
        memcpy(guests, at, 24 * (size_t)n);
        for (int hop = 0; hop < ranks; hop++) {
            for (int i = 0; i < n; i++)
                for (int j = 0; j < n; j++) {
                    double x = guests[3 * j] - at[3 * i], y = guests[3 * j + 1] - at[3 * i + 1];
                    double z = guests[3 * j + 2] - at[3 * i + 2], d = x * x + y * y + z * z + 0.01;
                    double f = 1 / (d * sqrt(d));
                    force[3 * i] += f * x, force[3 * i + 1] += f * y, force[3 * i + 2] += f * z;
                }
            if (hop + 1 < ranks)
                MPI_Sendrecv_replace(guests, 3 * n, MPI_DOUBLE, right, 0, left, 0, MPI_COMM_WORLD,
                                     MPI_STATUS_IGNORE);
        }
        for (int i = 0; i < 3 * n; i++) at[i] += 1e-6 * (speed[i] += 1e-6 * force[i]);
    }
    double seconds = stop_clock(), mine[4] = {0}, all[4];
    for (int i = 0; i < 3 * n; i++) mine[i % 3] += force[i], mine[3] += fabs(force[i]);
    MPI_Allreduce(mine, all, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int axis = 0; axis < 3; axis++) wrong |= !(fabs(all[axis]) < 1e-9 * all[3]);
    return finish(seconds, wrong);
}
