/* Allreduce and reduce with an operation that does not commute: the product of 2x2 matrices. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#define COUNT 8192 /* matrices: long enough for every algorithm to cut the message */

static double own[COUNT][4], all[COUNT][4];

static void times(const double *a, const double *b, double *into)
{
    double c[4] = { a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3],
        a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3] };
    for (int i = 0; i < 4; i++)
        into[i] = c[i];
}

static void operation(void *in, void *inout, int *length, MPI_Datatype *type)
{
    double *a = in, *b = inout;
    (void)type;
    for (int k = 0; k < *length; k++, a += 4, b += 4)
        times(a, b, b);
}

static void matrix(int rank, double *into)
{
    into[0] = into[3] = 1;
    into[1] = rank + 1;
    into[2] = rank % 2;
}

static int wrong(const double *right)
{
    for (int k = 0; k < COUNT; k++)
        for (int i = 0; i < 4; i++)
            if (fabs(all[k][i] - right[i]) > 1e-9)
                return 1;
    return 0;
}

int main(int argc, char **argv)
{
    int rank, size, bad = 0, total;
    double right[4] = { 1, 0, 0, 1 }, next[4];
    MPI_Datatype type;
    MPI_Op product;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_contiguous(4, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(operation, 0, &product);
    for (int r = 0; r < size; r++) {
        matrix(r, next);
        times(right, next, right);
    }
    for (int k = 0; k < COUNT; k++)
        matrix(rank, own[k]);
    for (int i = 0; i < 5; i++) {
        MPI_Allreduce(own, all, COUNT, type, product, MPI_COMM_WORLD);
        bad += wrong(right);
        MPI_Reduce(own, all, COUNT, type, product, 0, MPI_COMM_WORLD);
        bad += rank == 0 && wrong(right);
    }
    MPI_Reduce(&bad, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("wrong products: %d\nresult %s\n", total, total ? "WRONG" : "RIGHT");
    return MPI_Finalize();
}
