/* Conway's game of life on a torus with rows shared out: border rows by Isend, Irecv and Waitall.
   Arguments: rows and columns (a multiple of 16), generations (a multiple of 4).
   The start is a field of gliders, which have moved by one cell in 4 generations. */
#include "report.h"

static int alive(int i, int j, int n, int moved) {
    static const char *glider[3] = {".#.", "..#", "###"};
    int y = ((i - moved) % n + n) % n % 16, x = ((j - moved) % n + n) % n % 16;
    return y < 3 && x < 3 && glider[y][x] == '#';
}

int main(int count, char **words) {
    begin(&count, &words);
    int n = argument(count, words, 1), generations = argument(count, words, 2), wrong = 0;
    if (n % 16 || n % ranks || generations % 4) refuse("see the multiples in the source");
    int rows = n / ranks, first = rank * rows, wide = n + 2;
    int up = (rank + ranks - 1) % ranks, down = (rank + 1) % ranks;
    unsigned char *old = memory((size_t)wide * (rows + 2)), *new = memory((size_t)wide * (rows + 2));
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < n; j++) old[(i + 1) * wide + j + 1] = alive(first + i, j, n, 0);
    start_clock();
    for (int generation = 0; generation < generations; generation++) {
        MPI_Request r[4];
        for (int i = 1; i <= rows; i++) {
            old[i * wide] = old[i * wide + n];
            old[i * wide + n + 1] = old[i * wide + 1];
        }
        MPI_Irecv(old, wide, MPI_UNSIGNED_CHAR, up, 0, MPI_COMM_WORLD, &r[0]);
        MPI_Irecv(old + (rows + 1) * wide, wide, MPI_UNSIGNED_CHAR, down, 1, MPI_COMM_WORLD, &r[1]);
        MPI_Isend(old + wide, wide, MPI_UNSIGNED_CHAR, up, 1, MPI_COMM_WORLD, &r[2]);
        MPI_Isend(old + rows * wide, wide, MPI_UNSIGNED_CHAR, down, 0, MPI_COMM_WORLD, &r[3]);
        MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
        for (int i = 1; i <= rows; i++)
            for (int j = 1; j <= n; j++) {
                const unsigned char *c = old + i * wide + j;
                unsigned char near = c[-1] + c[1] + c[-wide - 1] + c[-wide] + c[-wide + 1] +
                                     c[wide - 1] + c[wide] + c[wide + 1];
                new[i * wide + j] = (near == 3) | (*c & (near == 2));
            }
        unsigned char *swap = old;
        old = new, new = swap;
    }
    double seconds = stop_clock();
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < n; j++)
            wrong |= old[(i + 1) * wide + j + 1] != alive(first + i, j, n, generations / 4);
    return finish(seconds, wrong);
}
