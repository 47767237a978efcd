/* Pi by random points; one Reduce at the end. Argument: thousands of points of a rank. */
#include "report.h"
#include <math.h>

int main(int count, char **words) {
    begin(&count, &words);
    long points = 1000L * argument(count, words, 1), inside = 0, all = 0;
    uint64_t state = 12345 + 1000003u * (uint64_t)rank;
    start_clock();
    for (long i = 0; i < points; i++) {
        uint64_t bits = random_bits(&state);
        double x = (double)(bits >> 32) * 0x1p-32, y = (double)(bits & 0xffffffffu) * 0x1p-32;
        inside += x * x + y * y < 1;
    }
    MPI_Reduce(&inside, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    double seconds = stop_clock(), total = (double)points * ranks;
    /* Five standard deviations. */
    int wrong = rank == 0 && !(fabs(4.0 * all / total - acos(-1.0)) < 5 * 1.65 / sqrt(total));
    return finish(seconds, wrong);
}
