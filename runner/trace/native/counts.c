/* The counts themselves, one set for each thread, and the file that they end up in. */

#include "trace.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DIRECTORY "AUTOTUNE_TRACE_DIR"

static struct {
    int active; /* between Init and Finalize of a process that was asked for its counts */
    int file, rank, size;
    pid_t pid;
    uint64_t began;
    char host[MPI_MAX_PROCESSOR_NAME + 1];
} self = {.file = -1};

static struct counts *all;
static int marked; /* whether the program called MPI_Pcontrol */
static volatile int ordered; /* whether an operation was created that does not commute */
static volatile int spawned; /* whether other processes were started */
int trace_timed = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread struct counts *ours __attribute__((tls_model("initial-exec")));

void trace_operation(int commute)
{
    if (!commute)
        ordered = 1;
}

void trace_spawn(void)
{
    spawned = 1;
}

static struct counts *new_counts(void)
{
    struct counts *made = calloc(1, sizeof *made);
    if (made)
        made->to = calloc((size_t)self.size, sizeof *made->to);
    if (!made || !made->to)
        trace_fail("no memory for", "the counts of a thread");
    made->rounds.left = trace_now();
    pthread_mutex_lock(&lock);
    made->next = all;
    all = made;
    pthread_mutex_unlock(&lock);
    return made;
}

struct counts *trace_enter(void)
{
    if (!self.active)
        return NULL;
    if (!ours)
        ours = new_counts();
    if (ours->depth)
        return NULL;
    ours->depth++;
    return ours;
}

static int bin(uint64_t bytes)
{
    int place = bytes ? 64 - __builtin_clzll(bytes) : 0;
    return place < TRACE_BINS ? place : TRACE_BINS - 1;
}

void trace_plain(struct counts *mine, enum trace_op op, uint64_t amount, int nonblocking)
{
    struct row_kind kind = {.op = op, .nonblocking = nonblocking};
    rows_add(&mine->rows, &kind, 1, amount, mine->spent);
    if (!nonblocking && (op == OP_WAIT || op == OP_RECV))
        rounds_waited(&mine->rounds, trace_timed);
}

void trace_transfer(struct counts *mine, uint64_t bytes)
{
    mine->op[OP_RMA].bytes += bytes;
    trace_plain(mine, OP_RMA, bytes, 0);
}

/* A call that sends nothing, or starts what was set up before: its time, but no message. */
static void add_time(struct counts *mine, int nonblocking)
{
    struct row_kind kind = {.op = OP_SEND, .nonblocking = nonblocking};
    rows_add(&mine->rows, &kind, 0, 0, mine->spent);
}

static void count_message(
    struct counts *mine, int to, uint64_t bytes, int nonblocking, uint64_t ns)
{
    struct row_kind kind = {OP_SEND, nonblocking, bin(bytes), 0, trace_far(to)};
    rows_add(&mine->rows, &kind, 1, bytes, ns);
    rounds_sent(&mine->rounds, OP_SEND, (uint64_t)kind.bin, (uint64_t)to);
    mine->op[OP_SEND].bytes += bytes;
    mine->op[OP_SEND].nonblocking += (uint64_t)nonblocking;
    mine->p2p_sizes[bin(bytes)]++;
    if (to < 0) {
        mine->outside++;
        return;
    }
    mine->to[to][0]++;
    mine->to[to][1] += bytes;
}

static int world_rank(struct counts *mine, MPI_Comm comm, int to)
{
    const struct comm_info *info = trace_comm(mine, comm);
    if (to < 0 || to >= info->peers)
        return -1;
    return info->world ? info->world[to] : to;
}

void trace_message(struct counts *mine, MPI_Comm comm, int to, uint64_t bytes, int nonblocking)
{
    if (to == MPI_PROC_NULL)
        add_time(mine, nonblocking);
    else
        count_message(mine, world_rank(mine, comm, to), bytes, nonblocking, mine->spent);
}

static void count_collective(
    struct counts *mine, const struct started *what, int nonblocking, uint64_t ns)
{
    enum trace_op op = what->op;
    struct row_kind kind = {op, nonblocking, bin(what->bytes), what->comm_size, what->far};
    rows_add(&mine->rows, &kind, 1, what->bytes, ns);
    mine->op[op].bytes += what->bytes;
    mine->op[op].comm_sizes += (uint64_t)what->comm_size;
    mine->op[op].nonblocking += (uint64_t)nonblocking;
    if (op != OP_BARRIER)
        mine->coll_sizes[kind.bin]++;
    rounds_sent(&mine->rounds, op, (uint64_t)kind.bin, (uint64_t)what->comm_size);
    if (!nonblocking)
        rounds_waited(&mine->rounds, trace_timed);
}

static struct started collective(
    struct counts *mine, enum trace_op op, MPI_Comm comm, uint64_t bytes)
{
    const struct comm_info *info = trace_comm(mine, comm);
    struct started what = {op, -1, info->size, info->far, bytes};
    return what;
}

void trace_collective(
    struct counts *mine, enum trace_op op, MPI_Comm comm, uint64_t bytes, int nonblocking)
{
    struct started what = collective(mine, op, comm, bytes);
    count_collective(mine, &what, nonblocking, mine->spent);
}

void trace_remember_message(
    struct counts *mine, MPI_Request request, MPI_Comm comm, int to, uint64_t bytes)
{
    struct started what = {OP_SEND, -1, 0, 0, bytes};
    if (to == MPI_PROC_NULL)
        return;
    what.to = world_rank(mine, comm, to);
    trace_remember(request, &what);
}

void trace_remember_collective(
    struct counts *mine, MPI_Request request, enum trace_op op, MPI_Comm comm, uint64_t bytes)
{
    struct started what = collective(mine, op, comm, bytes);
    trace_remember(request, &what);
}

static void start(struct counts *mine, MPI_Request request)
{
    struct started what;
    if (!trace_recall(request, &what))
        return;
    if (what.op == OP_SEND) {
        count_message(mine, what.to, what.bytes, 1, 0);
        return;
    }
    mine->op[what.op].calls++;
    mine->op[what.op].timed += (uint64_t)trace_timed;
    count_collective(mine, &what, 1, 0);
}

void trace_start(struct counts *mine, const MPI_Request requests[], int count)
{
    add_time(mine, 1);
    for (int at = 0; at < count; at++)
        start(mine, requests[at]);
}

void trace_mark(int level)
{
    if (!self.active || level > 1)
        return;
    pthread_mutex_lock(&lock);
    /* Counting is on from the start, but the first mark tells that this was not the timed part. */
    if (level == 1)
        for (struct counts *part = all; part; part = part->next) {
            rounds_restart(&part->rounds, !marked);
            for (int op = 0; op < OPS && !marked; op++)
                part->op[op].timed = 0;
        }
    marked = 1;
    trace_timed = level == 1;
    pthread_mutex_unlock(&lock);
}

void trace_begin(void)
{
    const char *directory = getenv(DIRECTORY);
    char path[4096];
    int length = 0;
    if (!directory || !*directory || self.active)
        return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &self.size);
    PMPI_Get_processor_name(self.host, &length);
    /* Before anything that can fail on one rank alone, because all ranks take part. */
    trace_exchange_nodes(self.host, self.rank, self.size);
    snprintf(path, sizeof path, "%s/rank-%d", directory, self.rank);
    /* Exclusive: a program started by a rank must not write over what the rank counts. */
    self.file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    unsetenv(DIRECTORY);
    if (self.file < 0)
        return;
    self.pid = getpid();
    self.began = trace_now();
    self.active = 1;
}

static struct counts *summed(void)
{
    struct counts *total = new_counts();
    for (struct counts *part = all; part; part = part->next) {
        if (part == total)
            continue;
        for (int op = 0; op < OPS; op++) {
            total->op[op].calls += part->op[op].calls;
            total->op[op].nonblocking += part->op[op].nonblocking;
            total->op[op].bytes += part->op[op].bytes;
            total->op[op].comm_sizes += part->op[op].comm_sizes;
            total->op[op].ns += part->op[op].ns;
            total->op[op].timed += part->op[op].timed;
        }
        for (int at = 0; at < TRACE_BINS; at++) {
            total->p2p_sizes[at] += part->p2p_sizes[at];
            total->coll_sizes[at] += part->coll_sizes[at];
        }
        for (int rank = 0; rank < self.size; rank++) {
            total->to[rank][0] += part->to[rank][0];
            total->to[rank][1] += part->to[rank][1];
        }
        total->outside += part->outside;
        rows_merge(&total->rows, &part->rows);
        rounds_merge(&total->rounds, &part->rounds);
    }
    return total;
}

static void write_sizes(FILE *out, const char *name, const uint64_t sizes[])
{
    fprintf(out, "%s", name);
    for (int at = 0; at < TRACE_BINS; at++)
        fprintf(out, " %llu", (unsigned long long)sizes[at]);
    fprintf(out, "\n");
}

static void write_counts(FILE *out, const struct counts *total, uint64_t wall)
{
    static const char *const names[] = {
#define X(id, name) name,
        TRACE_OPS(X)
#undef X
    };
    fprintf(out, "%s\nrank %d\nsize %d\nhost %s\nwall_ns %llu\noutside %llu\n", TRACE_FORMAT,
        self.rank, self.size, self.host, (unsigned long long)wall,
        (unsigned long long)total->outside);
    if (ordered || !spawned)
        fprintf(out, "commutes %d\n", !ordered);
    for (int op = 0; op < OPS; op++)
        fprintf(out, "op %s %llu %llu %llu %llu %llu\n", names[op],
            (unsigned long long)total->op[op].calls, (unsigned long long)total->op[op].nonblocking,
            (unsigned long long)total->op[op].bytes, (unsigned long long)total->op[op].comm_sizes,
            (unsigned long long)total->op[op].ns);
    for (int op = 0; marked && op < OPS; op++)
        fprintf(out, "timed %s %llu\n", names[op], (unsigned long long)total->op[op].timed);
    write_sizes(out, "p2p_sizes", total->p2p_sizes);
    write_sizes(out, "coll_sizes", total->coll_sizes);
    for (int rank = 0; rank < self.size; rank++)
        if (total->to[rank][0])
            fprintf(out, "to %d %llu %llu\n", rank, (unsigned long long)total->to[rank][0],
                (unsigned long long)total->to[rank][1]);
    rows_write(&total->rows, out, names);
    rounds_write(&total->rounds, out);
    fprintf(out, "end\n");
}

void trace_end(void)
{
    uint64_t wall = trace_now() - self.began;
    /* A child that was forked after Init has the counts, but they are its parent's to write. */
    if (!self.active || getpid() != self.pid)
        return;
    FILE *out = fdopen(self.file, "w");
    if (out) {
        write_counts(out, summed(), wall);
        fclose(out);
    }
    self.active = 0;
}
