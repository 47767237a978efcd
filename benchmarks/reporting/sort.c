/* Sample sort: keys go to the rank of their range by Alltoallv.
   Arguments: keys of a rank, repetitions. */
#include "report.h"

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(int count, char **words) {
    begin(&count, &words);
    int n = argument(count, words, 1), repetitions = argument(count, words, 2), wrong = 0;
    enum { SAMPLES = 32 };
    if (n < SAMPLES) refuse("too few keys");
    uint64_t *keys = memory(8 * (size_t)n), *got = memory(8 * (size_t)n * ranks);
    uint64_t *sample = memory(8 * SAMPLES), *samples = memory(8 * SAMPLES * (size_t)ranks);
    int *sent = memory(sizeof(int) * ranks), *from = memory(sizeof(int) * ranks);
    int *received = memory(sizeof(int) * ranks), *to = memory(sizeof(int) * ranks);
    uint64_t state = rank + 1;
    double seconds = 0;
    for (int repetition = 0; repetition < repetitions; repetition++) {
        uint64_t before[2] = {0, n}, after[2] = {0, 0}, sums[4];
        for (int i = 0; i < n; i++) before[0] += keys[i] = random_bits(&state);
        start_clock();
        qsort(keys, n, 8, ascending);
        for (int i = 0; i < SAMPLES; i++) sample[i] = keys[(long)n * i / SAMPLES];
        MPI_Allgather(sample, SAMPLES, MPI_UINT64_T, samples, SAMPLES, MPI_UINT64_T, MPI_COMM_WORLD);
        qsort(samples, (size_t)SAMPLES * ranks, 8, ascending);
        for (int r = 0, i = 0; r < ranks; r++) {
            from[r] = i;
            while (i < n && (r == ranks - 1 || keys[i] < samples[SAMPLES * (r + 1)])) i++;
            sent[r] = i - from[r];
        }
        MPI_Alltoall(sent, 1, MPI_INT, received, 1, MPI_INT, MPI_COMM_WORLD);
        int mine = 0;
        for (int r = 0; r < ranks; r++) to[r] = mine, mine += received[r];
        MPI_Alltoallv(keys, sent, from, MPI_UINT64_T, got, received, to, MPI_UINT64_T,
                      MPI_COMM_WORLD);
        qsort(got, mine, 8, ascending);
        seconds += stop_clock();
        /* In order, also from rank to rank, and with the same number and sum as before. */
        uint64_t last = mine ? got[mine - 1] : 0, previous = 0;
        MPI_Exscan(&last, &previous, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
        if (rank == 0) previous = 0;
        for (int i = 0; i < mine; i++) {
            wrong |= got[i] < previous;
            previous = got[i], after[0] += got[i], after[1]++;
        }
        MPI_Allreduce(before, sums, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(after, sums + 2, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        wrong |= sums[0] != sums[2] || sums[1] != sums[3];
    }
    return finish(seconds, wrong);
}
