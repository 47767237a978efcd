/* The stencil in C, with and without MPI (see __init__.py for tasks, arguments and output).
 *
 *   stencil boundary STEPS:ITERATIONS...   messages between processes, memory inside a process
 *   stencil messages STEPS:ITERATIONS...   a message for every edge, also to the process itself
 *   stencil inside   STEPS:ITERATIONS...   one process, one thread, a loop
 *   stencil threads  STEPS:ITERATIONS...   one process, two threads, one flag for each point
 *
 * Task i of a point reads the values of task i-1 in one array and writes into the other one.
 */
#define _GNU_SOURCE
#include "chain.h"
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WIDTH = 8, THREADS = 2, SIDES = 2, LINE = 64 };

/* Each value has a cache line of its own, as each point of the other runtimes has. */
typedef struct {
    _Alignas(LINE) double value;
} Slot;
typedef struct {
    _Alignas(LINE) atomic_long done;
} Flag;

static int process, processes, first, points; /* this process has the points first .. */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static double start_value(int point)
{
    return 0.1 + 0.1 * point;
}

static int exists(int point)
{
    return point >= 0 && point < WIDTH;
}

/* ---- one process ------------------------------------------------------------------------- */

static Slot inside[2][WIDTH];

static void task_inside(int p, long i, long steps)
{
    Slot *old = inside[i % 2], *new = inside[(i + 1) % 2];
    double own = old[p].value;
    double left = exists(p - 1) ? old[p - 1].value : own;
    double right = exists(p + 1) ? old[p + 1].value : own;
    new[p].value = chain_of(combined(left, own, right), steps);
}

static void loop_inside(long steps, long iterations)
{
    for (long i = 0; i < iterations; i++)
        for (int p = 0; p < WIDTH; p++)
            task_inside(p, i, steps);
}

static Flag flags[WIDTH];
static struct {
    long steps, iterations;
} job;

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void wait_for(int p, long iterations)
{
    while (exists(p) && atomic_load_explicit(&flags[p].done, memory_order_acquire) < iterations)
        relax();
}

static cpu_set_t allowed; /* CPUs of the process, before a thread is pinned */

static void pin(int thread)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && seen++ == thread)
            CPU_SET(cpu, &one);
    if (CPU_COUNT(&one))
        sched_setaffinity(0, sizeof one, &one);
}

/* A barrier of spinning threads: a thread that slept would begin late, by milliseconds on some
 * virtual machines. */
static atomic_long arrived;

static void meet(void)
{
    long own = atomic_fetch_add(&arrived, 1), target = (own / THREADS + 1) * THREADS;
    while (atomic_load(&arrived) < target)
        relax();
}

static void work(int thread)
{
    int begin = thread * WIDTH / THREADS, end = (thread + 1) * WIDTH / THREADS;
    meet();
    for (long i = 0; i < job.iterations; i++)
        for (int p = begin; p < end; p++) {
            wait_for(p - 1, i);
            wait_for(p + 1, i);
            task_inside(p, i, job.steps);
            atomic_store_explicit(&flags[p].done, i + 1, memory_order_release);
        }
    meet();
}

static void *second_thread(void *unused)
{
    pin(1);
    for (;;) {
        meet();
        if (job.iterations == 0)
            return unused;
        work(1);
    }
}

static void loop_threads(long steps, long iterations)
{
    for (int p = 0; p < WIDTH; p++)
        atomic_store(&flags[p].done, 0);
    job.steps = steps;
    job.iterations = iterations;
    meet();
    work(0);
}

/* ---- several processes ------------------------------------------------------------------- */

/* Slot 0 and slot points+1 are the neighbours' values; in "messages" every point has its own. */
static Slot shared[2][WIDTH + 2];
static Slot ghost[2][WIDTH][SIDES];

/* The receiver's point, the side of the edge and the iteration's parity. */
static int tag_of(int point, int side, long i)
{
    return (point * SIDES + side) * 2 + (int)(i % 2);
}

static void loop_boundary(long steps, long iterations)
{
    int left = process > 0, right = process < processes - 1;
    MPI_Request requests[2 * SIDES];
    for (long i = 0; i < iterations; i++) {
        Slot *old = shared[i % 2], *new = shared[(i + 1) % 2];
        int count = 0;
        if (left)
            MPI_Irecv(&new[0].value, 1, MPI_DOUBLE, process - 1, 0, MPI_COMM_WORLD,
                      &requests[count++]);
        if (right)
            MPI_Irecv(&new[points + 1].value, 1, MPI_DOUBLE, process + 1, 0, MPI_COMM_WORLD,
                      &requests[count++]);
        /* The points at the boundary come first, so that the others hide the messages. */
        for (int n = 0; n < points; n++) {
            int k = n == 0 ? 1 : n == 1 ? points : n;
            double own = old[k].value;
            double before = k > 1 || left ? old[k - 1].value : own;
            double after = k < points || right ? old[k + 1].value : own;
            new[k].value = chain_of(combined(before, own, after), steps);
            if (k == 1 && left)
                MPI_Isend(&new[k].value, 1, MPI_DOUBLE, process - 1, 0, MPI_COMM_WORLD,
                          &requests[count++]);
            if (k == points && right)
                MPI_Isend(&new[k].value, 1, MPI_DOUBLE, process + 1, 0, MPI_COMM_WORLD,
                          &requests[count++]);
        }
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    }
}

static int owner(int point)
{
    return point / (WIDTH / processes);
}

static void loop_messages(long steps, long iterations)
{
    MPI_Request requests[WIDTH][2 * SIDES];
    int count[WIDTH] = {0};
    for (long i = 0; i < iterations; i++)
        for (int n = 0; n < points; n++) {
            int p = first + n;
            Slot *arrived = ghost[i % 2][n], *coming = ghost[(i + 1) % 2][n];
            double own = shared[i % 2][n + 1].value, *result = &shared[(i + 1) % 2][n + 1].value;
            MPI_Waitall(count[n], requests[n], MPI_STATUSES_IGNORE);
            count[n] = 0;
            for (int side = 0; side < SIDES; side++) {
                int other = side ? p + 1 : p - 1;
                if (exists(other))
                    MPI_Irecv(&coming[side].value, 1, MPI_DOUBLE, owner(other),
                              tag_of(p, side, i), MPI_COMM_WORLD, &requests[n][count[n]++]);
            }
            double left = exists(p - 1) ? arrived[0].value : own;
            double right = exists(p + 1) ? arrived[1].value : own;
            *result = chain_of(combined(left, own, right), steps);
            for (int side = 0; side < SIDES; side++) {
                int other = side ? p + 1 : p - 1;
                if (exists(other))
                    MPI_Isend(result, 1, MPI_DOUBLE, owner(other), tag_of(other, 1 - side, i),
                              MPI_COMM_WORLD, &requests[n][count[n]++]);
            }
        }
    for (int n = 0; n < points; n++)
        MPI_Waitall(count[n], requests[n], MPI_STATUSES_IGNORE);
}

/* ---- the measurement --------------------------------------------------------------------- */

static void set_start(void)
{
    for (int p = 0; p < WIDTH; p++)
        inside[0][p].value = start_value(p);
    for (int k = 0; k < points + 2; k++)
        shared[0][k].value = start_value(first + k - 1);
    for (int n = 0; n < points; n++) {
        ghost[0][n][0].value = start_value(first + n - 1);
        ghost[0][n][1].value = start_value(first + n + 1);
    }
}

static void together_now(int mpi)
{
    if (mpi)
        MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    const char *names[] = {"boundary", "messages", "inside", "threads"};
    void (*loops[])(long, long) = {loop_boundary, loop_messages, loop_inside, loop_threads};
    int kind = 0, cases = argc - 2;
    pthread_t second;
    while (argc < 3 || (kind < 4 && strcmp(argv[1], names[kind])))
        if (argc < 3 || ++kind == 4) {
            fprintf(stderr, "usage: stencil boundary|messages|inside|threads STEPS:ITERATIONS...\n");
            return 2;
        }
    int mpi = kind < 2, threaded = kind == 3;
    double *wall = calloc(cases, sizeof *wall), *values = calloc(cases * WIDTH, sizeof *values);
    process = 0;
    processes = 1;
    if (mpi) {
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &process);
        MPI_Comm_size(MPI_COMM_WORLD, &processes);
    }
    if (WIDTH % processes) {
        fprintf(stderr, "stencil: %d processes do not divide %d points\n", processes, WIDTH);
        return 2;
    }
    points = WIDTH / processes;
    first = process * points;
    if (threaded) {
        sched_getaffinity(0, sizeof allowed, &allowed);
        pin(0);
        if (pthread_create(&second, NULL, second_thread, NULL)) {
            fprintf(stderr, "stencil: no second thread\n");
            return 1;
        }
    }
    for (int n = 0; n < cases; n++) {
        char *end;
        long steps = strtol(argv[2 + n], &end, 10), iterations = atol(end + 1);
        long warm = iterations / 10 > 2 ? iterations / 10 : 2;
        set_start();
        loops[kind](steps, warm);
        set_start();
        together_now(mpi);
        double begin = seconds();
        loops[kind](steps, iterations);
        double mine = seconds() - begin;
        double own[WIDTH];
        for (int k = 0; k < points; k++)
            own[k] = mpi ? shared[iterations % 2][k + 1].value : inside[iterations % 2][k].value;
        if (mpi) {
            MPI_Reduce(&mine, &wall[n], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
            MPI_Gather(own, points, MPI_DOUBLE, values + n * WIDTH, points, MPI_DOUBLE, 0,
                       MPI_COMM_WORLD);
        } else {
            wall[n] = mine;
            memcpy(values + n * WIDTH, own, sizeof own);
        }
    }
    if (process == 0) {
        printf("{\"wall_s\": [");
        for (int n = 0; n < cases; n++)
            printf("%s%.9g", n ? ", " : "", wall[n]);
        printf("], \"values\": [");
        for (int n = 0; n < cases * WIDTH; n++)
            printf("%s%s%.17g%s", n && n % WIDTH == 0 ? ", " : "", n % WIDTH ? ", " : "[",
                   values[n], n % WIDTH == WIDTH - 1 ? "]" : "");
        printf("]}\n");
    }
    if (mpi)
        MPI_Finalize();
    if (threaded) {
        job.iterations = 0;
        meet();
        pthread_join(second, NULL);
    }
    return 0;
}
