/* The hydrodynamics step of runner.programs.apps.cloverleaf3d in C over MPI: plain loops, one block a process.
 *
 *   mpicc -O3 -march=native -o cloverleaf3d cloverleaf3d.c -lm
 *   mpirun -n RANKS cloverleaf3d NX NY NZ STEPS [PX PY PZ]
 *
 * Without PX PY PZ the process grid with the smallest cut surface is taken, as the application does.
 * The physics, the start values, the order of the exchanges and of the operations on a cell are
 * those of the application (runner/programs/apps/cloverleaf3d: hydro.py, problem.py, halo.py), with two copies
 * of the state, and one message for all fields of a face.
 *
 * With -fno-math-errno the loop with the square root is vectorised too.
 *
 * One JSON line: "solver_s" (seconds of the slowest process from a barrier to its last step, after
 * one step that is not timed, as the application times its solver) and "checksum" (the application's
 * "energy": internal and kinetic energy of all cells; the order of the summation differs).
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DENSITY, ENERGY, PRESSURE, VISCOSITY, SOUND, U, V, W, VOLUME, MASS = VOLUME + 3, NEXT = MASS + 3 };
enum { STATE = 5, COUNT = NEXT + STATE };
/* Field numbers: 14 as in the application, then the state after the acceleration. */
static const double GAMMA = 1.4, STEP = 0.02;

typedef struct {
    long nx, ny, nz, row, plane, cells; /* own cells; pitches; cells with ghosts */
    double *field[COUNT];
    long start[3];    /* first own cell in the grid */
    int behind[3][2]; /* process behind a face, or -1 for a wall */
    double *sent[2], *received[2];
} Block;

static void *checked(void *memory)
{
    if (!memory) {
        fprintf(stderr, "cloverleaf3d: out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

/* ---- kernels ----------------------------------------------------------------------------- */

#define FOR_ROWS(b)                       \
    for (long z = 1; z <= (b)->nz; z++)   \
        for (long y = 1; y <= (b)->ny; y++)
#define FIRST(b) (z * (b)->plane + y * (b)->row + 1)
/* The fields of a kernel share no memory; GCC does not always see that from "restrict". */
#define FOR_CELLS(b) _Pragma("GCC ivdep") for (long i = first; i < first + (b)->nx; i++)

static void ideal_gas(const Block *b)
{
    const double *restrict density = b->field[DENSITY], *restrict energy = b->field[ENERGY];
    double *restrict pressure = b->field[PRESSURE], *restrict sound = b->field[SOUND];
    FOR_ROWS(b)
    {
        long first = FIRST(b);
        FOR_CELLS(b) {
            double p = (GAMMA - 1.0) * density[i] * energy[i];
            pressure[i] = p;
            sound[i] = sqrt(GAMMA * p / density[i]);
        }
    }
}

static void viscosity(const Block *b)
{
    const double *restrict density = b->field[DENSITY];
    const double *restrict u = b->field[U], *restrict v = b->field[V], *restrict w = b->field[W];
    double *restrict q = b->field[VISCOSITY];
    long row = b->row, plane = b->plane;
    FOR_ROWS(b)
    {
        long first = FIRST(b);
        FOR_CELLS(b) {
            double change = 0.5 * ((u[i + 1] - u[i - 1]) + (v[i + row] - v[i - row]) +
                                   (w[i + plane] - w[i - plane]));
            double squeezed = change < 0.0 ? change : 0.0;
            q[i] = 2.0 * density[i] * squeezed * squeezed;
        }
    }
}

/* Pressure and viscosity one cell ahead less those one cell behind. */
static inline double rise(const double *restrict p, const double *restrict q, long i, long ahead)
{
    return (p[i + ahead] + q[i + ahead]) - (p[i - ahead] + q[i - ahead]);
}

/* 32 times the gradient of Sobel, from the nine lines around a cell. */
static inline double slope(const double *restrict p, const double *restrict q, long i, long ahead,
                           long a, long b)
{
    double sum = rise(p, q, i - b - a, ahead);
    sum += 2.0 * rise(p, q, i - b, ahead);
    sum += rise(p, q, i - b + a, ahead);
    sum += 2.0 * rise(p, q, i - a, ahead);
    sum += 4.0 * rise(p, q, i, ahead);
    sum += 2.0 * rise(p, q, i + a, ahead);
    sum += rise(p, q, i + b - a, ahead);
    sum += 2.0 * rise(p, q, i + b, ahead);
    sum += rise(p, q, i + b + a, ahead);
    return sum;
}

static void accelerate(const Block *b)
{
    const double *restrict density = b->field[DENSITY], *restrict energy = b->field[ENERGY];
    const double *restrict p = b->field[PRESSURE], *restrict q = b->field[VISCOSITY];
    const double *restrict u = b->field[U], *restrict v = b->field[V], *restrict w = b->field[W];
    double *restrict density1 = b->field[NEXT], *restrict energy1 = b->field[NEXT + 1];
    double *restrict u1 = b->field[NEXT + 2], *restrict v1 = b->field[NEXT + 3];
    double *restrict w1 = b->field[NEXT + 4];
    long row = b->row, plane = b->plane;
    FOR_ROWS(b)
    {
        long first = FIRST(b);
        FOR_CELLS(b) {
            double gx = slope(p, q, i, 1, row, plane);
            double gy = slope(p, q, i, row, 1, plane);
            double gz = slope(p, q, i, plane, 1, row);
            double push = STEP / (32.0 * density[i]);
            double change = 0.5 * ((u[i + 1] - u[i - 1]) + (v[i + row] - v[i - row]) +
                                   (w[i + plane] - w[i - plane]));
            density1[i] = density[i];
            energy1[i] = energy[i] - STEP * (p[i] + q[i]) / density[i] * change;
            u1[i] = u[i] - push * gx;
            v1[i] = v[i] - push * gy;
            w1[i] = w[i] - push * gz;
        }
    }
}

static void fluxes(const Block *b)
{
    const double *restrict density = b->field[NEXT];
    for (int axis = 0; axis < 3; axis++) {
        const double *restrict speed = b->field[NEXT + 2 + axis];
        double *restrict volume = b->field[VOLUME + axis], *restrict mass = b->field[MASS + axis];
        long back = axis == 0 ? 1 : axis == 1 ? b->row : b->plane;
        FOR_ROWS(b)
        {
            long first = FIRST(b);
            FOR_CELLS(b) {
                double flow = 0.5 * STEP * (speed[i - back] + speed[i]);
                volume[i] = flow;
                mass[i] = flow * (flow > 0.0 ? density[i - back] : density[i]);
            }
        }
    }
}

/* What the mass through both faces of one axis carries of a quantity into a cell. */
static inline double carried(const double *restrict q, const double *restrict m, long i, long back)
{
    double low = m[i], high = m[i + back];
    return low * (low > 0.0 ? q[i - back] : q[i]) - high * (high > 0.0 ? q[i] : q[i + back]);
}

static void advect(const Block *b)
{
    const double *restrict density = b->field[NEXT];
    const double *restrict mx = b->field[MASS], *restrict my = b->field[MASS + 1];
    const double *restrict mz = b->field[MASS + 2];
    double *restrict density0 = b->field[DENSITY];
    static const int target[] = {ENERGY, U, V, W};
    long row = b->row, plane = b->plane;
    FOR_ROWS(b)
    {
        long first = FIRST(b);
        FOR_CELLS(b)
            density0[i] = density[i] + (mx[i] - mx[i + 1]) + (my[i] - my[i + row]) +
                          (mz[i] - mz[i + plane]);
        for (int kind = 0; kind < 4; kind++) {
            const double *restrict q = b->field[NEXT + 1 + kind];
            double *restrict q0 = b->field[target[kind]];
            FOR_CELLS(b) {
                double total = density[i] * q[i];
                total += carried(q, mx, i, 1);
                total += carried(q, my, i, row);
                total += carried(q, mz, i, plane);
                q0[i] = total / density0[i];
            }
        }
    }
}

/* ---- halos ------------------------------------------------------------------------------- */

/* The factor between a ghost beyond a wall and the cell before it. */
static double reflection(int field, int axis)
{
    if (field >= U && field <= W)
        return field - U == axis ? -1.0 : 1.0;
    if (field >= VOLUME && field < NEXT)
        return (field - VOLUME) % 3 == axis ? 0.0 : 1.0;
    if (field >= NEXT + 2)
        return field - (NEXT + 2) == axis ? -1.0 : 1.0;
    return 1.0;
}

/* A layer of cells across an axis: rows of a length, at distances. */
typedef struct {
    long rows, columns, width, row_step, plane_step;
} Layer;

static Layer layer(const Block *b, int axis)
{
    long x = b->nx + 2, y = b->ny + 2, z = b->nz + 2;
    if (axis == 0)
        return (Layer){z, y, 1, b->row, b->plane};
    if (axis == 1)
        return (Layer){z, 1, x, b->row, b->plane};
    return (Layer){1, y, x, b->row, b->plane};
}

static long place(const Block *b, int axis, long at)
{
    return at * (axis == 0 ? 1 : axis == 1 ? b->row : b->plane);
}

static long extent(const Block *b, int axis)
{
    return axis == 0 ? b->nx : axis == 1 ? b->ny : b->nz;
}

static double *pack(Layer l, const double *from, double *to)
{
    for (long z = 0; z < l.rows; z++)
        for (long y = 0; y < l.columns; y++, to += l.width)
            memcpy(to, from + z * l.plane_step + y * l.row_step, l.width * sizeof *to);
    return to;
}

static const double *unpack(Layer l, double *to, const double *from)
{
    for (long z = 0; z < l.rows; z++)
        for (long y = 0; y < l.columns; y++, from += l.width)
            memcpy(to + z * l.plane_step + y * l.row_step, from, l.width * sizeof *to);
    return from;
}

static void reflect(Layer l, double factor, const double *from, double *to)
{
    for (long z = 0; z < l.rows; z++)
        for (long y = 0; y < l.columns; y++) {
            long at = z * l.plane_step + y * l.row_step;
            for (long x = 0; x < l.width; x++)
                to[at + x] = factor * from[at + x];
        }
}

static void exchange(Block *b, int count, const int *fields)
{
    for (int axis = 0; axis < 3; axis++) {
        Layer l = layer(b, axis);
        int size = (int)(l.rows * l.columns * l.width) * count, n = 0;
        MPI_Request requests[4];
        for (int side = 0; side < 2; side++)
            if (b->behind[axis][side] >= 0)
                MPI_Irecv(b->received[side], size, MPI_DOUBLE, b->behind[axis][side], 1 - side,
                          MPI_COMM_WORLD, &requests[n++]);
        for (int side = 0; side < 2; side++)
            if (b->behind[axis][side] >= 0) {
                double *to = b->sent[side];
                for (int k = 0; k < count; k++)
                    to = pack(l, b->field[fields[k]] + place(b, axis, side ? extent(b, axis) : 1), to);
                MPI_Isend(b->sent[side], size, MPI_DOUBLE, b->behind[axis][side], side,
                          MPI_COMM_WORLD, &requests[n++]);
            }
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        for (int side = 0; side < 2; side++) {
            long own = place(b, axis, side ? extent(b, axis) : 1);
            long ghost = place(b, axis, side ? extent(b, axis) + 1 : 0);
            const double *from = b->received[side];
            for (int k = 0; k < count; k++) {
                double *field = b->field[fields[k]];
                if (b->behind[axis][side] >= 0)
                    from = unpack(l, field + ghost, from);
                else
                    reflect(l, reflection(fields[k], axis), field + own, field + ghost);
            }
        }
    }
}

#define EXCHANGE(b, ...)                                      \
    do {                                                      \
        const int list[] = {__VA_ARGS__};                     \
        exchange(b, (int)(sizeof list / sizeof *list), list); \
    } while (0)

static void step(Block *b)
{
    ideal_gas(b);
    EXCHANGE(b, DENSITY, ENERGY, PRESSURE, U, V, W);
    viscosity(b);
    EXCHANGE(b, VISCOSITY);
    accelerate(b);
    EXCHANGE(b, NEXT, NEXT + 1, NEXT + 2, NEXT + 3, NEXT + 4);
    fluxes(b);
    EXCHANGE(b, VOLUME, VOLUME + 1, VOLUME + 2, MASS, MASS + 1, MASS + 2);
    advect(b);
}

/* ---- set-up ------------------------------------------------------------------------------ */

static void choose(const long size[3], int ranks, int grid[3])
{
    long least = -1;
    for (int px = 1; px <= ranks; px++)
        for (int py = 1; ranks % px == 0 && py <= ranks / px; py++) {
            if (ranks / px % py != 0)
                continue;
            int pz = ranks / px / py;
            if (px > size[0] || py > size[1] || pz > size[2])
                continue;
            long cut = size[1] * size[2] * (px - 1) + size[0] * size[2] * (py - 1) +
                       size[0] * size[1] * (pz - 1);
            if (least < 0 || cut < least) {
                least = cut;
                grid[0] = px, grid[1] = py, grid[2] = pz;
            }
        }
    if (least < 0)
        grid[0] = grid[1] = grid[2] = 0;
}

static double *pages(long count)
{
    double *made = checked(malloc(count * sizeof *made));
    for (long i = 0; i < count; i++)
        made[i] = 0.0;
    return made;
}

static void set_up(Block *b, const long size[3], const int grid[3], int rank)
{
    int at[3] = {rank % grid[0], rank / grid[0] % grid[1], rank / grid[0] / grid[1]};
    int stride[3] = {1, grid[0], grid[0] * grid[1]};
    long *start = b->start, count[3];
    for (int axis = 0; axis < 3; axis++) {
        long each = size[axis] / grid[axis], more = size[axis] % grid[axis];
        start[axis] = at[axis] * each + (at[axis] < more ? at[axis] : more);
        count[axis] = each + (at[axis] < more);
        b->behind[axis][0] = at[axis] > 0 ? rank - stride[axis] : -1;
        b->behind[axis][1] = at[axis] + 1 < grid[axis] ? rank + stride[axis] : -1;
    }
    b->nx = count[0], b->ny = count[1], b->nz = count[2];
    b->row = b->nx + 2, b->plane = b->row * (b->ny + 2), b->cells = b->plane * (b->nz + 2);
    double *memory = pages(COUNT * b->cells);
    for (int k = 0; k < COUNT; k++)
        b->field[k] = memory + k * b->cells;
    long faces[3] = {(b->ny + 2) * (b->nz + 2), b->row * (b->nz + 2), b->plane};
    long largest = 0;
    for (int axis = 0; axis < 3; axis++)
        largest = faces[axis] > largest ? faces[axis] : largest;
    for (int side = 0; side < 2; side++) {
        b->sent[side] = pages(6 * largest);
        b->received[side] = pages(6 * largest);
    }
}

static void start(Block *b, const long size[3])
{
    memset(b->field[0], 0, COUNT * b->cells * sizeof *b->field[0]);
    for (long z = 0; z < b->nz + 2; z++)
        for (long y = 0; y < b->ny + 2; y++)
            for (long x = 0; x < b->nx + 2; x++) {
                long i = z * b->plane + y * b->row + x;
                int inside = (b->start[0] + x - 1 + 0.5) / size[0] < 0.4 &&
                             (b->start[1] + y - 1 + 0.5) / size[1] < 0.5 &&
                             (b->start[2] + z - 1 + 0.5) / size[2] < 0.3;
                b->field[DENSITY][i] = inside ? 1.0 : 0.2;
                b->field[ENERGY][i] = inside ? 2.5 : 1.0;
            }
}

static double energy(const Block *b)
{
    double sum = 0.0;
    FOR_ROWS(b)
    {
        long first = FIRST(b);
        for (long i = first; i < first + b->nx; i++) {
            double u = b->field[U][i], v = b->field[V][i], w = b->field[W][i];
            sum += b->field[DENSITY][i] * (b->field[ENERGY][i] + 0.5 * (u * u + v * v + w * w));
        }
    }
    return sum;
}

int main(int argc, char **argv)
{
    int rank, ranks, grid[3] = {0, 0, 0};
    long size[3] = {0, 0, 0}, steps = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc == 5 || argc == 8) {
        for (int axis = 0; axis < 3; axis++)
            size[axis] = atol(argv[1 + axis]);
        steps = atol(argv[4]);
        if (argc == 5)
            choose(size, ranks, grid);
        else
            for (int axis = 0; axis < 3; axis++)
                grid[axis] = atoi(argv[5 + axis]);
    }
    int good = steps > 0 && grid[0] * grid[1] * grid[2] == ranks;
    for (int axis = 0; axis < 3; axis++)
        good = good && grid[axis] > 0 && size[axis] >= grid[axis];
    if (!good) {
        if (rank == 0)
            fprintf(stderr,
                    "usage: mpirun -n RANKS cloverleaf3d NX NY NZ STEPS [PX PY PZ]: whole numbers "
                    "above 0, PX*PY*PZ = RANKS, no more parts than cells along an axis\n");
        MPI_Finalize();
        return 2;
    }
    Block block;
    set_up(&block, size, grid, rank);
    start(&block, size);
    step(&block);
    start(&block, size);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (long n = 0; n < steps; n++)
        step(&block);
    double own[1] = {MPI_Wtime() - begin}, slowest[1], sum[1] = {energy(&block)}, total[1];
    MPI_Reduce(own, slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(sum, total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"solver_s\": %.9g, \"checksum\": %.17g}\n", *slowest, *total);
    MPI_Finalize();
    return 0;
}
