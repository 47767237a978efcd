/* Factors a matrix with SuperLU_DIST and prints one JSON line.
 *
 *   driver FILE [grid=RxC] [order=mmd|metis|natural] [rowperm=none|mc64] [maxsup=N] [relax=N]
 *          [lookahead=N] [symmetric=0|1]
 *
 * FILE, little endian: rows and entries (int64), the starts of the rows (int64, rows + 1), the
 * columns (int64) and the values (double) of the entries. Each process reads its rows of it.
 *
 * The whole of pdgssvx runs twice and the second run counts. "seconds" is the time of the
 * factorization, pdgstrf, on the slowest process, from a barrier on. SuperLU's own figure,
 * "fact_s", has no barrier before it: it contains the wait for processes that distribute their part
 * of the matrix more slowly. "operations" are those that SuperLU counts. "factors_mb" is what it
 * says that L and U take with their indices.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "superlu_ddefs.h"

typedef int_t (*pdgstrf_type)(superlu_dist_options_t *, int, int, double, dLUstruct_t *,
                              gridinfo_t *, SuperLUStat_t *, int *);

static double factored_s;

/* pdgssvx calls this one. */
int_t pdgstrf(superlu_dist_options_t *options, int m, int n, double norm, dLUstruct_t *factors,
              gridinfo_t *grid, SuperLUStat_t *stat, int *info)
{
    static pdgstrf_type original;
    if (original == NULL)
        original = (pdgstrf_type)dlsym(RTLD_NEXT, "pdgstrf");
    MPI_Barrier(grid->comm);
    double begin = MPI_Wtime();
    int_t code = original(options, m, n, norm, factors, grid, stat, info);
    factored_s = MPI_Wtime() - begin;
    return code;
}

static void fail(const char *what, const char *which)
{
    fprintf(stderr, "driver: %s %s\n", what, which);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static const char *value_of(int argc, char **argv, const char *key, const char *usual)
{
    size_t length = strlen(key);
    for (int i = 2; i < argc; i++)
        if (strncmp(argv[i], key, length) == 0 && argv[i][length] == '=')
            return argv[i] + length + 1;
    return usual;
}

static int number_of(int argc, char **argv, const char *key, int usual)
{
    const char *text = value_of(argc, argv, key, NULL);
    return text == NULL ? usual : atoi(text);
}

static void read_at(FILE *file, int64_t at, void *to, size_t bytes)
{
    if (fseek(file, (long)at, SEEK_SET) || (bytes && fread(to, bytes, 1, file) != 1))
        fail("cannot read", "the matrix");
}

/* The rows of one process; pdgssvx may change a matrix, so every run reads it anew. */
typedef struct {
    int rows, first, count, entries;
    int_t *starts, *columns;
    double *values;
} Part;

static Part read_part(const char *path, int rank, int size)
{
    FILE *file = fopen(path, "rb");
    int64_t head[2];
    if (file == NULL)
        fail("cannot open", path);
    read_at(file, 0, head, sizeof head);
    Part part = {.rows = (int)head[0]};
    part.first = (int)(head[0] * rank / size);
    part.count = (int)(head[0] * (rank + 1) / size) - part.first;
    int64_t *starts = malloc((part.count + 1) * sizeof *starts);
    read_at(file, 16 + 8 * (int64_t)part.first, starts, (part.count + 1) * sizeof *starts);
    part.entries = (int)(starts[part.count] - starts[0]);
    int64_t *columns = malloc(part.entries * sizeof *columns + 1);
    int64_t at = 16 + 8 * (head[0] + 1);
    read_at(file, at + 8 * starts[0], columns, part.entries * sizeof *columns);
    part.starts = intMalloc_dist(part.count + 1);
    part.columns = intMalloc_dist(part.entries);
    part.values = doubleMalloc_dist(part.entries);
    read_at(file, at + 8 * head[1] + 8 * starts[0], part.values, part.entries * sizeof(double));
    for (int i = 0; i <= part.count; i++)
        part.starts[i] = (int_t)(starts[i] - starts[0]);
    for (int i = 0; i < part.entries; i++)
        part.columns[i] = (int_t)columns[i];
    free(starts);
    free(columns);
    fclose(file);
    return part;
}

static void free_part(Part *part)
{
    SUPERLU_FREE(part->starts);
    SUPERLU_FREE(part->columns);
    SUPERLU_FREE(part->values);
}

/* The right-hand side of the application: from -1 to 1. */
static double right_side(int row, int rows)
{
    return rows == 1 ? -1.0 : -1.0 + 2.0 * row / (rows - 1);
}

/* max |A x - b| / max |b|, with the solution of all processes. */
static double residual_of(const char *path, const double *own, int rank, int size)
{
    Part part = read_part(path, rank, size);
    double *x = malloc(part.rows * sizeof *x), worst[2] = {0.0, 0.0}, found[2];
    int *counts = malloc(size * sizeof *counts), *firsts = malloc(size * sizeof *firsts);
    MPI_Allgather(&part.count, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgather(&part.first, 1, MPI_INT, firsts, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgatherv(own, part.count, MPI_DOUBLE, x, counts, firsts, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int i = 0; i < part.count; i++) {
        double right = right_side(part.first + i, part.rows), sum = -right;
        for (int_t e = part.starts[i]; e < part.starts[i + 1]; e++)
            sum += part.values[e] * x[part.columns[e]];
        /* Not fmax, which drops what is not a number. */
        worst[0] = worst[0] >= fabs(sum) ? worst[0] : fabs(sum);
        worst[1] = fmax(worst[1], fabs(right));
    }
    MPI_Allreduce(worst, found, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    free(x);
    free(counts);
    free(firsts);
    free_part(&part);
    return found[0] / found[1];
}

typedef struct {
    double seconds, fact_s, whole_s, operations, factors_mb, residual;
    int info, tiny;
} Run;

static Run solve(const char *path, const superlu_dist_options_t *given, gridinfo_t *grid)
{
    int rank = grid->iam, size = grid->nprow * grid->npcol;
    superlu_dist_options_t options = *given;
    Part part = read_part(path, rank, size);
    SuperMatrix matrix;
    dCreate_CompRowLoc_Matrix_dist(&matrix, part.rows, part.rows, part.entries, part.count,
                                   part.first, part.values, part.columns, part.starts, SLU_NR_loc,
                                   SLU_D, SLU_GE);
    double *x = doubleMalloc_dist(part.count);
    for (int i = 0; i < part.count; i++)
        x[i] = right_side(part.first + i, part.rows);
    dScalePermstruct_t scaled;
    dLUstruct_t factors;
    dSOLVEstruct_t solved;
    SuperLUStat_t stat;
    superlu_dist_mem_usage_t memory;
    double error;
    Run run = {0};
    dScalePermstructInit(part.rows, part.rows, &scaled);
    dLUstructInit(part.rows, &factors);
    PStatInit(&stat);
    MPI_Barrier(grid->comm);
    double begin = MPI_Wtime();
    pdgssvx(&options, &matrix, &scaled, x, part.count, 1, grid, &factors, &solved, &error, &stat,
            &run.info);
    double own[3] = {factored_s, stat.utime[FACT], MPI_Wtime() - begin}, slowest[3];
    MPI_Allreduce(own, slowest, 3, MPI_DOUBLE, MPI_MAX, grid->comm);
    run.seconds = slowest[0];
    run.fact_s = slowest[1];
    run.whole_s = slowest[2];
    run.tiny = stat.TinyPivots;
    if (run.info == 0) {
        dQuerySpace_dist(part.rows, &factors, grid, &stat, &memory);
        double counted[2] = {stat.ops[FACT], memory.for_lu / 1e6}, sum[2];
        MPI_Allreduce(counted, sum, 2, MPI_DOUBLE, MPI_SUM, grid->comm);
        run.operations = sum[0];
        run.factors_mb = sum[1];
        run.residual = residual_of(path, x, rank, size);
        dDestroy_LU(part.rows, grid, &factors);
        dSolveFinalize(&options, &solved);
    }
    PStatFree(&stat);
    dScalePermstructFree(&scaled);
    dLUstructFree(&factors);
    SUPERLU_FREE(matrix.Store);
    SUPERLU_FREE(x);
    free_part(&part);
    return run;
}

/* The file of the library that dgemm comes from. */
static const char *blas(void)
{
    Dl_info from;
    void *dgemm = dlsym(RTLD_DEFAULT, "dgemm_");
    static char real[4096];
    if (dgemm == NULL || !dladdr(dgemm, &from) || realpath(from.dli_fname, real) == NULL)
        return "unknown";
    return real;
}

int main(int argc, char **argv)
{
    int rank, size, rows, columns, level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 2)
        fail("expected", "FILE [KEY=VALUE ...]");
    for (rows = (int)sqrt((double)size); size % rows; rows--)
        ;
    columns = size / rows;
    const char *mesh = value_of(argc, argv, "grid", NULL);
    if (mesh != NULL && (sscanf(mesh, "%dx%d", &rows, &columns) != 2 || rows * columns != size))
        fail("grid does not fit the processes:", mesh);

    superlu_dist_options_t options;
    set_default_options_dist(&options);
    const char *order = value_of(argc, argv, "order", "mmd");
    const char *rowperm = value_of(argc, argv, "rowperm", "none");
    if (strcmp(order, "mmd") == 0)
        options.ColPerm = MMD_AT_PLUS_A;
    else if (strcmp(order, "natural") == 0)
        options.ColPerm = NATURAL;
#ifdef HAVE_PARMETIS
    else if (strcmp(order, "metis") == 0)
        options.ColPerm = METIS_AT_PLUS_A;
#endif
    else
        fail("this SuperLU_DIST has no order", order);
    if (strcmp(rowperm, "none") == 0)
        options.RowPerm = NOROWPERM;
    else if (strcmp(rowperm, "mc64") == 0)
        options.RowPerm = LargeDiag_MC64;
    else
        fail("unknown rowperm", rowperm);
    options.Equil = NO;
    options.ReplaceTinyPivot = NO;
    options.IterRefine = NOREFINE;
    options.PrintStat = NO;
    options.num_lookaheads = number_of(argc, argv, "lookahead", options.num_lookaheads);
    options.SymPattern = number_of(argc, argv, "symmetric", 0) ? YES : NO;
    /* The environment comes before the options. */
    unsetenv("NREL");
    unsetenv("NSUP");
    unsetenv("SUPERLU_RELAX");
    unsetenv("SUPERLU_MAXSUP");
    unsetenv("SUPERLU_NUM_LOOKAHEADS");
    options.superlu_relax = number_of(argc, argv, "relax", options.superlu_relax);
    options.superlu_maxsup = number_of(argc, argv, "maxsup", options.superlu_maxsup);
    int relax = (int)sp_ienv_dist(2, &options), maxsup = (int)sp_ienv_dist(3, &options);

    gridinfo_t grid;
    superlu_gridinit(MPI_COMM_WORLD, rows, columns, &grid);
    solve(argv[1], &options, &grid);
    Run run = solve(argv[1], &options, &grid);
    if (rank == 0) {
        printf("{\"seconds\": %.9g, \"fact_s\": %.9g, \"whole_s\": %.9g, \"operations\": %.9g, "
               "\"gflops\": %.6g, \"factors_mb\": %.6g, \"residual\": ",
               run.seconds, run.fact_s, run.whole_s, run.operations,
               run.operations / run.seconds / 1e9, run.factors_mb);
        printf(isfinite(run.residual) ? "%.6g" : "null", run.residual);
        printf(", \"info\": %d, \"tiny_pivots\": %d, \"grid\": \"%dx%d\", \"order\": \"%s\", "
               "\"rowperm\": \"%s\", \"maxsup\": %d, \"relax\": %d, \"lookahead\": %d, "
               "\"symmetric\": %d, \"blas\": \"%s\", \"version\": \"%d.%d.%d\"}\n",
               run.info, run.tiny, rows, columns, order, rowperm, maxsup, relax,
               options.num_lookaheads, options.SymPattern == YES, blas(),
               SUPERLU_DIST_MAJOR_VERSION, SUPERLU_DIST_MINOR_VERSION,
               SUPERLU_DIST_PATCH_VERSION);
    }
    superlu_gridexit(&grid);
    MPI_Finalize();
    return run.info ? 1 : 0;
}
