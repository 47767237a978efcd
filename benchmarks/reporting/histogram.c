/* A histogram of random numbers; the bins of all ranks are added by Reduce in every round.
   Arguments: bins (a power of two), numbers of a rank in a round, rounds. */
#include "report.h"
#include <string.h>

int main(int count, char **words) {
    begin(&count, &words);
    int bins = argument(count, words, 1), numbers = argument(count, words, 2);
    int rounds = argument(count, words, 3), wrong = 0;
    if (bins & (bins - 1)) refuse("the number of bins must be a power of two");
    int *mine = memory(sizeof(int) * (size_t)bins), *all = memory(sizeof(int) * (size_t)bins);
    uint64_t state = rank + 1;
    /* The sums of the numbers, drawn and found in the bins. */
    long drawn = 0, found = 0, total = 0, right = 0;
    start_clock();
    for (int round = 0; round < rounds; round++) {
        memset(mine, 0, sizeof(int) * (size_t)bins);
        for (int i = 0; i < numbers; i++) {
            int bin = (int)(random_bits(&state) & (uint64_t)(bins - 1));
            mine[bin]++;
            drawn += bin;
        }
        MPI_Reduce(mine, all, bins, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0)
            for (int bin = 0; bin < bins; bin++) found += (long)bin * all[bin], total += all[bin];
    }
    double seconds = stop_clock();
    MPI_Reduce(&drawn, &right, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) wrong = found != right || total != (long)numbers * rounds * ranks;
    return finish(seconds, wrong);
}
