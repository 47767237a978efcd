/* C = A B with rows shared out; every rank broadcasts its rows of B in turn.
   Arguments: rows and columns, repetitions. Entries are small whole numbers, so sums are exact. */
#include "report.h"
#include <string.h>

static double a_at(int i, int j) { return (3 * i + 5 * j) % 7 - 3; }
static double b_at(int i, int j) { return (2 * i + 3 * j) % 5 - 2; }

int main(int count, char **words) {
    begin(&count, &words);
    int n = argument(count, words, 1), repetitions = argument(count, words, 2), wrong = 0;
    if (n % ranks) refuse("the ranks must divide the rows");
    int rows = n / ranks, first = rank * rows;
    size_t cells = (size_t)rows * n;
    double *a = memory(8 * cells), *b = memory(8 * cells), *c = memory(8 * cells);
    double *panel = memory(8 * cells);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < n; j++) {
            a[(size_t)i * n + j] = a_at(first + i, j);
            b[(size_t)i * n + j] = b_at(first + i, j);
        }
    start_clock();
    for (int r = 0; r < repetitions; r++)
        for (int root = 0; root < ranks; root++) {
            if (root == rank) memcpy(panel, b, 8 * cells);
            MPI_Bcast(panel, (int)cells, MPI_DOUBLE, root, MPI_COMM_WORLD);
            for (int i = 0; i < rows; i++)
                for (int k = 0; k < rows; k++) {
                    double factor = a[(size_t)i * n + root * rows + k];
                    for (int j = 0; j < n; j++)
                        c[(size_t)i * n + j] += factor * panel[(size_t)k * n + j];
                }
        }
    double seconds = stop_clock();
    /* C v against A (B v) for a vector v. */
    double *product = memory(8 * (size_t)n);
    for (int k = 0; k < n; k++)
        for (int j = 0; j < n; j++) product[k] += b_at(k, j) * (j % 3 + 1);
    for (int i = 0; i < rows; i++) {
        double found = 0, right = 0;
        for (int j = 0; j < n; j++) {
            found += c[(size_t)i * n + j] * (j % 3 + 1);
            right += a_at(first + i, j) * product[j];
        }
        wrong |= found != repetitions * right;
    }
    return finish(seconds, wrong);
}
