/* What the programs share: start, clock, numbers, and the line of JSON at the end. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks;
static double began;

/* Start MPI. A program has whole numbers above 0 as arguments; see argument(). */
static inline void begin(int *count, char ***words) {
    MPI_Init(count, words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

/* End all ranks with exit code 2. */
static inline void refuse(const char *why) {
    if (rank == 0) fprintf(stderr, "error: %s\n", why);
    MPI_Finalize();
    exit(2);
}

/* Argument number i; a missing or wrong one ends the program. */
static inline int argument(int count, char **words, int i) {
    char *end = NULL;
    long value = i < count ? strtol(words[i], &end, 10) : 0;
    if (value <= 0 || value > INT32_MAX || *end) refuse("expected whole numbers above 0");
    return (int)value;
}

static inline void *memory(size_t bytes) {
    void *got = calloc(1, bytes);
    if (got == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    return got;
}

static inline void start_clock(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    began = MPI_Wtime();
}

/* Seconds of this rank since start_clock(). */
static inline double stop_clock(void) { return MPI_Wtime() - began; }

/* Print the slowest rank's seconds, and whether no rank found a mistake; returns the exit code. */
static inline int finish(double seconds, int wrong) {
    double slowest;
    int any;
    MPI_Allreduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"seconds\": %.9f, \"verified\": %s}\n", slowest, any ? "false" : "true");
    MPI_Finalize();
    return any;
}

/* A generator of 64-bit numbers (splitmix64). */
static inline uint64_t random_bits(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
