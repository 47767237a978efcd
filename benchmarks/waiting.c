/* Counts, in each MPI call that may wait, the calls, those in which the rank gave the processor away,
 * how often it did so, and the time.  Preloaded by benchmarks/waiting.py; one line per rank on standard
 * error. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { OTHER, SEND, RECV, WAIT, ALLTOALL, KINDS };
static const char *const names[] = {"other", "send", "recv", "wait", "alltoall"};
static long yields[KINDS], calls[KINDS], waited[KINDS];
static double seconds[KINDS];
static int inside = OTHER;

int sched_yield(void) {
    yields[inside]++;
    return (int)syscall(SYS_sched_yield);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* mpi4py loads the library for itself alone, so the real function is found by the library's name. */
static void *real(const char *name) {
    void *library = dlopen("libmpi.so.40", RTLD_NOLOAD | RTLD_LAZY);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "waiting: no %s in libmpi.so.40\n", name);
        _exit(3);
    }
    return found;
}

typedef void *P;
#define WRAP(kind, name, parameters, arguments)                 \
    int name parameters {                                       \
        static int(*call) parameters;                           \
        if (!call) call = (int(*) parameters)real("P" #name);   \
        long before = yields[kind];                             \
        double began = now();                                   \
        inside = kind;                                          \
        int code = call arguments;                              \
        inside = OTHER;                                         \
        seconds[kind] += now() - began;                         \
        calls[kind]++;                                          \
        waited[kind] += yields[kind] > before;                  \
        return code;                                            \
    }
WRAP(SEND, MPI_Send, (P b, int n, P t, int to, int tag, P c), (b, n, t, to, tag, c))
WRAP(RECV, MPI_Recv, (P b, int n, P t, int from, int tag, P c, P s), (b, n, t, from, tag, c, s))
WRAP(WAIT, MPI_Wait, (P r, P s), (r, s))
WRAP(WAIT, MPI_Waitall, (int n, P r, P s), (n, r, s))
WRAP(ALLTOALL, MPI_Alltoall, (P a, int n, P t, P b, int m, P u, P c), (a, n, t, b, m, u, c))

__attribute__((destructor)) static void say(void) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!rank || !(calls[SEND] + calls[WAIT] + calls[ALLTOALL])) return;
    for (int i = SEND; i < KINDS; i++)
        fprintf(stderr, "waiting %s %s %ld %ld %ld %.4f\n", rank, names[i], calls[i], waited[i], yields[i], seconds[i]);
}
