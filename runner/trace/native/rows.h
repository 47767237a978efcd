/* Sums of the calls of one kind: operation, size and partners. */

#ifndef AUTOTUNE_ROWS_H
#define AUTOTUNE_ROWS_H

#include <stdint.h>
#include <stdio.h>

/* comm_size: 0 where the call has no communicator that matters (messages, waiting).
   far: the partner, or part of the communicator, is on another node. */
struct row_kind {
    int op, nonblocking, bin, comm_size, far;
};

struct row {
    uint64_t key; /* 0: an empty place */
    uint64_t calls, bytes, ns;
};

/* All zero: an empty table. */
struct rows {
    struct row *row;
    unsigned places, used;
};

void rows_add(struct rows *table, const struct row_kind *kind, uint64_t calls, uint64_t bytes,
    uint64_t ns);
void rows_merge(struct rows *total, const struct rows *part);

/* One line for each row; names: of the operations. */
void rows_write(const struct rows *table, FILE *out, const char *const names[]);

#endif
