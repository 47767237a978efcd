/* Sums over all cells above and to the left, in a pipeline: rows are shared out, and a rank passes
   on the last row of a block of columns as soon as it has it.
   Arguments: rows and columns, columns of a block, repetitions. Cell (i, j) has the value i + j. */
#include "report.h"

int main(int count, char **words) {
    begin(&count, &words);
    int n = argument(count, words, 1), block = argument(count, words, 2);
    int repetitions = argument(count, words, 3), wrong = 0;
    if (n % ranks || n % block) refuse("ranks and block must divide the rows and columns");
    int rows = n / ranks, first = rank * rows;
    long *sums = memory(sizeof(long) * n * (rows + 1)), *line = memory(sizeof(long) * rows);
    start_clock();
    for (int repetition = 0; repetition < repetitions; repetition++) {
        for (int i = 0; i < rows; i++) line[i] = 0;
        for (int start = 0; start < n; start += block) {
            if (rank)
                MPI_Recv(sums + start, block, MPI_LONG, rank - 1, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            for (int i = 0; i < rows; i++)
                for (int j = start; j < start + block; j++) {
                    line[i] += first + i + j;
                    sums[(i + 1L) * n + j] = sums[(long)i * n + j] + line[i];
                }
            if (rank + 1 < ranks)
                MPI_Send(sums + (long)rows * n + start, block, MPI_LONG, rank + 1, 0,
                         MPI_COMM_WORLD);
        }
    }
    double seconds = stop_clock();
    for (long i = first; i < first + rows; i++)
        for (long j = 0; j < n; j++) {
            long right = (j + 1) * (i * (i + 1) / 2) + (i + 1) * (j * (j + 1) / 2);
            wrong |= sums[(i - first + 1) * n + j] != right;
        }
    return finish(seconds, wrong);
}
