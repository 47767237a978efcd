/* Pairs of ranks exchange messages; the partner is half of the ranks away.
   Arguments: bytes of a message, rounds. */
#include "report.h"

int main(int count, char **words) {
    begin(&count, &words);
    int bytes = argument(count, words, 1), rounds = argument(count, words, 2), wrong = 0;
    if (ranks % 2) refuse("the number of ranks must be even");
    int partner = (rank + ranks / 2) % ranks;
    unsigned char *out = memory(bytes), *in = memory(bytes);
    for (int i = 0; i < bytes; i++) out[i] = (unsigned char)(rank + i);
    start_clock();
    for (int round = 0; round < rounds; round++) {
        out[0] = out[bytes - 1] = (unsigned char)(rank + round);
        MPI_Sendrecv(out, bytes, MPI_BYTE, partner, 0, in, bytes, MPI_BYTE, partner, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wrong |= in[0] != (unsigned char)(partner + round) || in[bytes - 1] != in[0];
    }
    double seconds = stop_clock();
    for (int i = 1; i < bytes - 1; i++) wrong |= in[i] != (unsigned char)(partner + i);
    return finish(seconds, wrong);
}
