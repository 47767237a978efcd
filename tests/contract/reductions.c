/* Reductions with an operation that does not commute: which results are wrong?
 *
 * The operation is the composition of affine maps x -> a x + b over the integers modulo 2^32, packed
 * as a * 2^32 + b: exact, associative, not commutative.  Every reduction is done on communicators
 * of the sizes given, with several counts and roots, with and without MPI_IN_PLACE.
 * Arguments: SIZES COUNTS COLLECTIVE...  (lists with commas; "all" for every collective).
 * Prints one line for each collective and size: "COLLECTIVE SIZE right|WRONG count ...".
 * With "commute" as the first argument the sum of integers is used, declared as commutative.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int commutes;

static uint64_t compose(uint64_t f, uint64_t g) {
    if (commutes) return f + g;
    uint32_t a = f >> 32, b = (uint32_t)f, c = g >> 32, d = (uint32_t)g;
    return (uint64_t)(uint32_t)(a * c) << 32 | (uint32_t)(a * d + b);
}
static void operation(void *in, void *inout, int *len, MPI_Datatype *type) {
    (void)type;
    uint64_t *f = in, *g = inout;
    for (int i = 0; i < *len; i++) g[i] = compose(f[i], g[i]);
}
static uint64_t element(int rank, int i) {
    return (uint64_t)(2u * rank + 3) << 32 | (uint32_t)(7u * i + 11u * rank + 1);
}
/* The composition of the elements i of the ranks first to last. */
static uint64_t product(int first, int last, int i) {
    uint64_t value = element(first, i);
    for (int r = first + 1; r <= last; r++) value = compose(value, element(r, i));
    return value;
}
static int numbers(char *list, int *to) {
    int n = 0;
    for (char *w = strtok(list, ","); w; w = strtok(NULL, ",")) to[n++] = atoi(w);
    return n;
}
enum { ALLREDUCE, REDUCE, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN,
       IALLREDUCE, IREDUCE, IREDUCE_SCATTER, IREDUCE_SCATTER_BLOCK, ISCAN, IEXSCAN, MANY };
static const char *names[] = {"allreduce", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan",
       "iallreduce", "ireduce", "ireduce_scatter", "ireduce_scatter_block", "iscan", "iexscan"};

static int wrong(int what, int count, int root, int in_place, MPI_Op op, MPI_Comm comm) {
    int rank, size, bad = 0;
    MPI_Comm_rank(comm, &rank); MPI_Comm_size(comm, &size);
    int block = count, first = 0, all = count;  /* what this rank gets: block elements from first on */
    int *parts = malloc(size * sizeof *parts);
    int base = what % 6;
    if (base == REDUCE_SCATTER_BLOCK) { all = count * size; first = rank * count; }
    if (base == REDUCE_SCATTER) {
        all = 0;
        for (int r = 0; r < size; r++) { parts[r] = count + r % 3; if (r < rank) first += parts[r]; all += parts[r]; }
        block = parts[rank];
    }
    uint64_t *send = malloc((all + 1) * 8), *recv = malloc((all + 1) * 8);
    for (int i = 0; i < all; i++) send[i] = element(rank, i);
    memcpy(recv, send, all * 8);
    void *from = in_place && (base != REDUCE || rank == root) ? MPI_IN_PLACE : (void *)send;
    void *to = recv;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype type = MPI_UINT64_T;
    switch (what) {
        case ALLREDUCE: MPI_Allreduce(from, to, count, type, op, comm); break;
        case REDUCE: MPI_Reduce(from, to, count, type, op, root, comm); break;
        case REDUCE_SCATTER: MPI_Reduce_scatter(from, to, parts, type, op, comm); break;
        case REDUCE_SCATTER_BLOCK: MPI_Reduce_scatter_block(from, to, count, type, op, comm); break;
        case SCAN: MPI_Scan(from, to, count, type, op, comm); break;
        case EXSCAN: MPI_Exscan(from, to, count, type, op, comm); break;
        case IALLREDUCE: MPI_Iallreduce(from, to, count, type, op, comm, &request); break;
        case IREDUCE: MPI_Ireduce(from, to, count, type, op, root, comm, &request); break;
        case IREDUCE_SCATTER: MPI_Ireduce_scatter(from, to, parts, type, op, comm, &request); break;
        case IREDUCE_SCATTER_BLOCK: MPI_Ireduce_scatter_block(from, to, count, type, op, comm, &request); break;
        case ISCAN: MPI_Iscan(from, to, count, type, op, comm, &request); break;
        case IEXSCAN: MPI_Iexscan(from, to, count, type, op, comm, &request); break;
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int last = size - 1, looked = 1;
    if (base == REDUCE) looked = rank == root;
    if (base == SCAN) last = rank;
    if (base == EXSCAN) { last = rank - 1; looked = rank > 0; }
    for (int i = 0; looked && i < block; i++) bad |= recv[i] != product(0, last, first + i);
    free(send); free(recv); free(parts);
    MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_MAX, comm);
    return bad;
}
int main(int argc, char **argv) {
    int rank, ranks, sizes[32], counts[32];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 1 && !strcmp(argv[1], "commute")) { commutes = 1; argc--; argv++; }
    if (argc < 4) { if (!rank) fprintf(stderr, "usage: reductions [commute] SIZES COUNTS COLLECTIVE...\n"); MPI_Finalize(); return 2; }
    int m = numbers(argv[1], sizes), n = numbers(argv[2], counts), total = 0;
    MPI_Op op;
    MPI_Op_create(operation, commutes, &op);
    for (int k = 0; k < m; k++) {
        if (sizes[k] > ranks) continue;
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, rank < sizes[k] ? 0 : MPI_UNDEFINED, rank, &comm);
        for (int what = 0; what < MANY; what++) {
            int wanted = 0;
            for (int j = 3; j < argc; j++) wanted |= !strcmp(argv[j], names[what]) || !strcmp(argv[j], "all");
            if (!wanted) continue;
            char text[512] = "";
            int bad = 0;
            if (comm != MPI_COMM_NULL)
                for (int c = 0; c < n; c++) {
                    int here = 0;
                    for (int in_place = 0; in_place < 2; in_place++)
                        for (int root = 0; root < (what % 6 == REDUCE ? sizes[k] : 1); root++)
                            here |= wrong(what, counts[c], root, in_place, op, comm);
                    if (here) snprintf(text + strlen(text), sizeof text - strlen(text), " %d", counts[c]);
                    bad |= here;
                }
            if (rank == 0) { printf("%s %d %s%s\n", names[what], sizes[k], bad ? "WRONG" : "right", text); fflush(stdout); }
            total += bad;
            MPI_Barrier(MPI_COMM_WORLD);
        }
        if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
    }
    MPI_Op_free(&op);
    if (rank == 0) printf("result %s\n", total ? "WRONG" : "RIGHT");
    MPI_Finalize();
    return 0;
}
