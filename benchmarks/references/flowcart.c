/* A V-cycle multigrid on a mesh with cut cells in C over MPI: the opponent of the flat form of
 * runner/programs/apps/flowcart, with the same mesh, shares, cycle, messages and extra work of cut cells.
 *
 *     mpirun -n PROCESSES flowcart WIDTH CYCLES CUT_WORK
 *
 * The cells of a level have ids along the curve. A process owns consecutive ids of each level; its
 * arrays hold its own cells, then the cells of other processes that it reads, then a zero.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEVELS = 3, SMOOTHINGS = 2, COARSE = 6 };

static int rank, processes;

static void *memory(size_t count, size_t size) {
    void *made = calloc(count + 1, size);
    if (!made) {
        fprintf(stderr, "flowcart: no memory for %zu elements\n", count);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return made;
}

/* The whole mesh of a level, on every process. */
typedef struct {
    int width, count;
    int *ids;                /* of a place in the box, or -1 */
    int (*places)[3];        /* of an id */
    int *parents, *owners;   /* of an id */
    char *cut;
} Mesh;

static int id_at(const Mesh *m, int x, int y, int z) {
    int w = m->width;
    if (x < 0 || y < 0 || z < 0 || x >= w || y >= w || z >= w)
        return -1;
    return m->ids[((size_t)x * w + y) * w + z];
}

/* The ids of the six neighbours. */
static void around(const Mesh *m, int id, int *found) {
    const int *p = m->places[id];
    found[0] = id_at(m, p[0] - 1, p[1], p[2]);
    found[1] = id_at(m, p[0] + 1, p[1], p[2]);
    found[2] = id_at(m, p[0], p[1] - 1, p[2]);
    found[3] = id_at(m, p[0], p[1] + 1, p[2]);
    found[4] = id_at(m, p[0], p[1], p[2] - 1);
    found[5] = id_at(m, p[0], p[1], p[2] + 1);
}

static int coordinate(long code, int axis) {
    int found = 0;
    for (int bit = 0; bit < 20; bit++)
        found |= (int)(code >> (3 * bit + axis) & 1) << bit;
    return found;
}

static int is_open(double width, int x, int y, int z) {
    double a = (x + 0.5) / width, b = (y + 0.5) / width, c = (z + 0.5) / width;
    double p = (a - 0.35 - 0.2 * b) / 0.3, q = (c - 0.25) / 0.12, r = b / 0.8;
    return !(p * p + q * q + r * r < 1);
}

/* Number the cells along the curve; a coarser cell exists if one of its eight children does. */
static void number_cells(Mesh *m, const Mesh *fine) {
    int w = m->width, side = 1;
    size_t box = (size_t)w * w * w;
    while (side < w)
        side *= 2;
    m->ids = memory(box, sizeof *m->ids);
    m->places = memory(box, sizeof *m->places);
    m->count = 0;
    for (long code = 0; code < (long)side * side * side; code++) {
        int x = coordinate(code, 0), y = coordinate(code, 1), z = coordinate(code, 2);
        if (x >= w || y >= w || z >= w)
            continue;
        int there = 0;
        if (!fine)
            there = is_open(w, x, y, z);
        else
            for (int k = 0; k < 8 && !there; k++)
                there = id_at(fine, 2 * x + (k & 1), 2 * y + (k >> 1 & 1), 2 * z + (k >> 2)) >= 0;
        m->ids[((size_t)x * w + y) * w + z] = there ? m->count : -1;
        if (there) {
            int *place = m->places[m->count++];
            place[0] = x, place[1] = y, place[2] = z;
        }
    }
}

static void build(Mesh *mesh, int width) {
    for (int l = 0; l < LEVELS; l++) {
        mesh[l].width = width >> l;
        number_cells(&mesh[l], l ? &mesh[l - 1] : NULL);
        mesh[l].parents = memory(mesh[l].count, sizeof(int));
        mesh[l].owners = memory(mesh[l].count, sizeof(int));
    }
    for (int l = 0; l + 1 < LEVELS; l++)
        for (int i = 0; i < mesh[l].count; i++) {
            const int *p = mesh[l].places[i];
            mesh[l].parents[i] = id_at(&mesh[l + 1], p[0] / 2, p[1] / 2, p[2] / 2);
        }
    /* A cut cell has a neighbour inside the box that is solid. */
    Mesh *m = &mesh[0];
    m->cut = memory(m->count, 1);
    for (int i = 0; i < m->count; i++)
        for (int axis = 0; axis < 3; axis++)
            for (int step = -1; step <= 1; step += 2) {
                int p[3] = {m->places[i][0], m->places[i][1], m->places[i][2]};
                p[axis] += step;
                if (p[axis] >= 0 && p[axis] < width && id_at(m, p[0], p[1], p[2]) < 0)
                    m->cut[i] = 1;
            }
    /* Equal numbers of fine cells for each process; a coarsest cell is never divided. */
    Mesh *last = &mesh[LEVELS - 1];
    int *sizes = memory(last->count, sizeof *sizes);
    for (int i = 0; i < m->count; i++) {
        int id = i;
        for (int l = 0; l + 1 < LEVELS; l++)
            id = mesh[l].parents[id];
        sizes[id]++;
    }
    double before = 0;
    for (int i = 0; i < last->count; before += sizes[i], i++) {
        int owner = (int)((before + sizes[i] / 2.0) * processes / m->count);
        owner = owner < processes - 1 ? owner : processes - 1;
        owner = owner < i ? owner : i;
        int rest = processes - last->count + i;
        last->owners[i] = owner > rest ? owner : rest;
    }
    free(sizes);
    for (int l = LEVELS - 2; l >= 0; l--)
        for (int i = 0; i < mesh[l].count; i++)
            mesh[l].owners[i] = mesh[l + 1].owners[mesh[l].parents[i]];
}

/* The share of this process in a level. */
typedef struct {
    int first, cells, ghosts;     /* the first own id, and the numbers of own and other cells */
    double *values[2], *right;
    unsigned (*table)[6], *parents, *work;
    int partners, *partner, *ghost, *send; /* ghost[k], send[k]: where the part of partner k begins */
    unsigned *places;             /* the own cells that are sent */
    double *buffer;
    MPI_Request *requests;
} Level;

static void own_share(Level *own, const Mesh *m, const Mesh *above, int cut_work) {
    own->first = 0;
    while (m->owners[own->first] != rank)
        own->first++;
    own->cells = 0;
    while (own->first + own->cells < m->count && m->owners[own->first + own->cells] == rank)
        own->cells++;
    int n = own->cells, near[6];
    int *place = memory(m->count, sizeof *place); /* of a ghost */
    for (int i = 0; i < n; i++) {
        around(m, own->first + i, near);
        for (int k = 0; k < 6; k++)
            if (near[k] >= 0 && m->owners[near[k]] != rank)
                place[near[k]] = 1;
    }
    own->partner = memory(processes, sizeof(int));
    own->ghost = memory(processes + 1, sizeof(int));
    own->send = memory(processes + 1, sizeof(int));
    for (int i = 0, last = -1; i < m->count; i++)
        if (place[i]) {
            if (m->owners[i] != last) {
                last = own->partner[own->partners] = m->owners[i];
                own->ghost[own->partners++] = own->ghosts;
            }
            place[i] = n + own->ghosts++;
        }
    own->ghost[own->partners] = own->ghosts;
    int length = n + own->ghosts + 1, sent = 0;
    own->places = memory((size_t)n * 6, sizeof *own->places);
    for (int p = 0; p < own->partners; p++) {
        own->send[p] = sent;
        for (int i = 0; i < n; i++) {
            around(m, own->first + i, near);
            int theirs = 0;
            for (int k = 0; k < 6; k++)
                theirs |= near[k] >= 0 && m->owners[near[k]] == own->partner[p];
            if (theirs)
                own->places[sent++] = i;
        }
    }
    own->send[own->partners] = sent;
    own->buffer = memory(sent, sizeof(double));
    own->requests = memory(2 * own->partners, sizeof *own->requests);
    own->values[0] = memory(length, sizeof(double));
    own->values[1] = memory(length, sizeof(double));
    own->right = memory(n, sizeof(double));
    own->table = memory(n, sizeof *own->table);
    own->parents = memory(n, sizeof *own->parents);
    own->work = memory(n, sizeof *own->work);
    int above_first = 0;
    while (above && above->owners[above_first] != rank)
        above_first++;
    for (int i = 0; i < n; i++) {
        int id = own->first + i;
        around(m, id, near);
        for (int k = 0; k < 6; k++)
            own->table[i][k] = near[k] < 0                    ? length - 1
                               : m->owners[near[k]] == rank ? near[k] - own->first
                                                              : place[near[k]];
        if (above)
            own->parents[i] = m->parents[id] - above_first;
        own->work[i] = m->cut && m->cut[id] ? cut_work : 0;
    }
    free(place);
}

static void exchange(Level *own, double *values) {
    int count = 0;
    for (int p = 0; p < own->partners; p++)
        MPI_Irecv(values + own->cells + own->ghost[p], own->ghost[p + 1] - own->ghost[p],
                  MPI_DOUBLE, own->partner[p], 0, MPI_COMM_WORLD, &own->requests[count++]);
    for (int i = 0; i < own->send[own->partners]; i++)
        own->buffer[i] = values[own->places[i]];
    for (int p = 0; p < own->partners; p++)
        MPI_Isend(own->buffer + own->send[p], own->send[p + 1] - own->send[p], MPI_DOUBLE,
                  own->partner[p], 0, MPI_COMM_WORLD, &own->requests[count++]);
    MPI_Waitall(count, own->requests, MPI_STATUSES_IGNORE);
}

static double neighbours(const double *values, const unsigned *at) {
    return (values[at[0]] + values[at[1]]) + (values[at[2]] + values[at[3]]) +
           (values[at[4]] + values[at[5]]);
}

static void smooth(const Level *own, const double *restrict old, double *restrict new) {
    for (int i = 0; i < own->cells; i++) {
        /* A cut cell computes its geometry: Newton's iteration, which ends at 1. */
        double area = own->work[i] ? own->work[i] : 1.0;
        for (unsigned k = 0; k < own->work[i]; k++)
            area = 0.5 * (area + 1.0 / area);
        double rest = 6.0 * old[i] - neighbours(old, own->table[i]);
        new[i] = old[i] + 0.13333333333333333 * (area * own->right[i] - rest);
    }
}

static void restrict_to(const Level *own, Level *above) {
    const double *values = own->values[0];
    memset(above->right, 0, above->cells * sizeof(double));
    memset(above->values[0], 0, (above->cells + above->ghosts) * sizeof(double));
    for (int i = 0; i < own->cells; i++) {
        double rest = 6.0 * values[i] - neighbours(values, own->table[i]);
        above->right[own->parents[i]] += 0.375 * (own->right[i] - rest);
    }
}

static void prolong(const Level *above, Level *own) {
    for (int i = 0; i < own->cells; i++)
        own->values[0][i] += above->values[0][own->parents[i]];
}

static void smoothings(Level *own, int count, Level *finer) {
    for (int n = 0; n < count; n++) {
        smooth(own, own->values[n % 2], own->values[1 - n % 2]);
        if (n < count - 1 || !finer)
            exchange(own, own->values[1 - n % 2]);
    }
    if (finer) {
        prolong(own, finer);
        exchange(finer, finer->values[0]);
    }
}

static void cycle(Level *levels) {
    for (int l = 0; l + 1 < LEVELS; l++) {
        smoothings(&levels[l], SMOOTHINGS, NULL);
        restrict_to(&levels[l], &levels[l + 1]);
    }
    smoothings(&levels[LEVELS - 1], COARSE, &levels[LEVELS - 2]);
    for (int l = LEVELS - 2; l >= 0; l--)
        smoothings(&levels[l], SMOOTHINGS, l ? &levels[l - 1] : NULL);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    int width = argc > 3 ? atoi(argv[1]) : 0, cycles = argc > 3 ? atoi(argv[2]) : 0;
    int cut_work = argc > 3 ? atoi(argv[3]) : 0;
    if (width < 16 || width % 4 || cycles < 1 || cut_work < 1) {
        if (rank == 0)
            fprintf(stderr, "flowcart: expected WIDTH, a multiple of 4 from 16 on, CYCLES and "
                            "CUT_WORK\n");
        MPI_Finalize();
        return 2;
    }
    Mesh mesh[LEVELS] = {0};
    Level levels[LEVELS] = {0};
    build(mesh, width);
    for (int l = 0; l < LEVELS; l++)
        own_share(&levels[l], &mesh[l], l + 1 < LEVELS ? &mesh[l + 1] : NULL, cut_work);
    Level *fine = &levels[0];
    for (int i = 0; i < fine->cells; i++)
        fine->right[i] = ((long)(fine->first + i) * 37 % 101 - 50) / 64.0;
    for (int l = 0; l < LEVELS; l++) /* opens the connections */
        exchange(&levels[l], levels[l].values[0]);

    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int c = 0; c < cycles; c++)
        cycle(levels);
    double mine = MPI_Wtime() - begin, seconds;
    MPI_Reduce(&mine, &seconds, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);

    double part = 0, residual;
    for (int i = 0; i < fine->cells; i++) {
        double rest = 6.0 * fine->values[0][i] - neighbours(fine->values[0], fine->table[i]);
        part += (fine->right[i] - rest) * (fine->right[i] - rest);
    }
    MPI_Reduce(&part, &residual, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"solver_s\": %.9f, \"checksum\": %.17g}\n", seconds, sqrt(residual));
    MPI_Finalize();
    return 0;
}
