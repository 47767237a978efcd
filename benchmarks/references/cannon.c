/* Cannon's algorithm in C over MPI, as straightforward as in a textbook: the opponent of the flat
 * form of runner/programs/apps/cannon, with the same matrices, blocks, messages and product of blocks.
 *
 *     mpirun -n PROCESSES cannon SIZE ITERATIONS
 *
 * Compile with -DDGEMM=NAME -DWHOLE=TYPE for a CBLAS function NAME whose extents have this type;
 * without them the blocks are multiplied by a blocked loop. The processes form the squarest grid.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef DGEMM
void DGEMM(int order, int transposed_a, int transposed_b, WHOLE rows, WHOLE columns, WHOLE depth,
           double alpha, const double *a, WHOLE a_pitch, const double *b, WHOLE b_pitch, double beta,
           double *c, WHOLE c_pitch);
#endif

/* C += A B for blocks of n rows and columns. */
static void add_product(int n, const double *restrict a, const double *restrict b,
                        double *restrict c) {
#ifdef DGEMM
    DGEMM(101, 111, 111, n, n, n, 1.0, a, n, b, n, 1.0, c, n);
#else
    enum { DEPTH = 64 };
    for (int first = 0; first < n; first += DEPTH) {
        int last = first + DEPTH < n ? first + DEPTH : n;
        for (int i = 0; i < n; i++)
            for (int k = first; k < last; k++) {
                double x = a[(size_t)i * n + k];
                for (int j = 0; j < n; j++)
                    c[(size_t)i * n + j] += x * b[(size_t)k * n + j];
            }
    }
#endif
}

static int modulo(int a, int n) { return (a % n + n) % n; }

static double *blocks(int count, int n) {
    double *made = calloc((size_t)count * n * n, sizeof *made);
    if (!made) {
        fprintf(stderr, "cannon: no memory for %d blocks of %d x %d\n", count, n, n);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return made;
}

int main(int argc, char **argv) {
    int rank, processes;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    int size = argc > 2 ? atoi(argv[1]) : 0, iterations = argc > 2 ? atoi(argv[2]) : 0;
    int grid_rows = 1;
    for (int d = 1; d * d <= processes; d++)
        if (processes % d == 0)
            grid_rows = d;
    int grid_columns = processes / grid_rows;
    int side = grid_columns; /* blocks along a side: the least common multiple */
    while (side % grid_rows)
        side += grid_columns;
    if (size < 1 || iterations < 1 || size % side) {
        if (rank == 0)
            fprintf(stderr, "cannon: expected SIZE, a multiple of %d, and ITERATIONS\n", side);
        MPI_Finalize();
        return 2;
    }
    int n = size / side, rows = side / grid_rows, columns = side / grid_columns;
    int row = rank / grid_columns, column = rank % grid_columns;
    int left = row * grid_columns + modulo(column - 1, grid_columns);
    int right = row * grid_columns + modulo(column + 1, grid_columns);
    int up = modulo(row - 1, grid_rows) * grid_columns + column;
    int down = modulo(row + 1, grid_rows) * grid_columns + column;
    int first_x = row * rows, first_y = column * columns;

    /* a[j]: the column j of the blocks of A, which travels left in one message; b[i]: the row i of
     * the blocks of B, which travels up. */
    size_t block = (size_t)n * n;
    double **a = malloc(columns * sizeof *a), **b = malloc(rows * sizeof *b);
    double *spare_a = blocks(rows, n), *spare_b = blocks(columns, n);
    double *c = blocks(rows * columns, n);
    for (int j = 0; j < columns; j++)
        a[j] = blocks(rows, n);
    for (int i = 0; i < rows; i++)
        b[i] = blocks(columns, n);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            int x = first_x + i, y = first_y + j, k = (x + y) % side;
            for (int r = 0; r < n; r++)
                for (int s = 0; s < n; s++) {
                    long ar = (long)x * n + r, as = (long)k * n + s;
                    long br = (long)k * n + r, bs = (long)y * n + s;
                    a[j][i * block + (size_t)r * n + s] = ((3 * ar + 5 * as) % 11 - 5) / 8.0;
                    b[i][j * block + (size_t)r * n + s] = ((7 * br + 2 * bs) % 13 - 6) / 8.0;
                }
            add_product(n, a[j] + i * block, b[i] + j * block, c); /* touches the memory */
        }
    memset(c, 0, rows * columns * block * sizeof *c);

    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int step = 0; step < iterations * side; step++) {
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++)
                add_product(n, a[j] + i * block, b[i] + j * block, c + (i * columns + j) * block);
        MPI_Request requests[4];
        int count = 0;
        if (left != rank) {
            MPI_Irecv(spare_a, rows * n * n, MPI_DOUBLE, right, 0, MPI_COMM_WORLD,
                      &requests[count++]);
            MPI_Isend(a[0], rows * n * n, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &requests[count++]);
        }
        if (up != rank) {
            MPI_Irecv(spare_b, columns * n * n, MPI_DOUBLE, down, 1, MPI_COMM_WORLD,
                      &requests[count++]);
            MPI_Isend(b[0], columns * n * n, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &requests[count++]);
        }
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        double *first_a = a[0], *first_b = b[0];
        memmove(a, a + 1, (columns - 1) * sizeof *a);
        memmove(b, b + 1, (rows - 1) * sizeof *b);
        a[columns - 1] = left == rank ? first_a : spare_a;
        b[rows - 1] = up == rank ? first_b : spare_b;
        spare_a = left == rank ? spare_a : first_a;
        spare_b = up == rank ? spare_b : first_b;
    }
    double mine = MPI_Wtime() - begin, seconds;
    MPI_Reduce(&mine, &seconds, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);

    /* The sum of v[i] w[j] C[i][j]; it is exact. */
    double part = 0, checksum;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            for (int r = 0; r < n; r++)
                for (int s = 0; s < n; s++) {
                    long p = (long)(first_x + i) * n + r, q = (long)(first_y + j) * n + s;
                    part += (double)((7 * p % 15 - 7) * (5 * q % 13 - 6)) *
                            c[(i * columns + j) * block + (size_t)r * n + s];
                }
    MPI_Reduce(&part, &checksum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"solver_s\": %.9f, \"checksum\": %.17g}\n", seconds, checksum);
    MPI_Finalize();
    return 0;
}
