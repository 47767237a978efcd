/* The rows of one thread, in an open hash table: a call costs one look-up and a few additions. */

#include "rows.h"

#include "trace.h"

#include <stdlib.h>

#define FIRST_PLACES 256 /* a power of two; most programs have fewer than 100 rows */

/* Operation and size bin take 5 bits each; the highest bit tells a row from an empty place. */
static uint64_t key_of(const struct row_kind *kind)
{
    return UINT64_C(1) << 63 | (uint64_t)(uint32_t)kind->comm_size << 12 | (uint64_t)kind->op << 7 |
        (uint64_t)kind->bin << 2 | (uint64_t)(kind->nonblocking != 0) << 1 |
        (uint64_t)(kind->far != 0);
}

static struct row_kind kind_of(uint64_t key)
{
    struct row_kind kind = {
        .op = (int)(key >> 7 & 31),
        .nonblocking = (int)(key >> 1 & 1),
        .bin = (int)(key >> 2 & 31),
        .comm_size = (int)(key >> 12 & UINT32_MAX),
        .far = (int)(key & 1),
    };
    return kind;
}

static struct row *place_of(const struct rows *table, uint64_t key)
{
    unsigned last = table->places - 1;
    unsigned at = (unsigned)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & last;
    while (table->row[at].key && table->row[at].key != key)
        at = (at + 1) & last;
    return &table->row[at];
}

static void grow(struct rows *table)
{
    struct rows larger = {.places = table->places ? 2 * table->places : FIRST_PLACES};
    larger.row = calloc(larger.places, sizeof *larger.row);
    if (!larger.row)
        trace_fail("no memory for", "the rows of a thread");
    for (unsigned at = 0; at < table->places; at++)
        if (table->row[at].key) {
            *place_of(&larger, table->row[at].key) = table->row[at];
            larger.used++;
        }
    free(table->row);
    *table = larger;
}

static void add(struct rows *table, uint64_t key, uint64_t calls, uint64_t bytes, uint64_t ns)
{
    if (4 * (table->used + 1) > 3 * table->places)
        grow(table);
    struct row *row = place_of(table, key);
    if (!row->key) {
        row->key = key;
        table->used++;
    }
    row->calls += calls;
    row->bytes += bytes;
    row->ns += ns;
}

void rows_add(struct rows *table, const struct row_kind *kind, uint64_t calls, uint64_t bytes,
    uint64_t ns)
{
    add(table, key_of(kind), calls, bytes, ns);
}

void rows_merge(struct rows *total, const struct rows *part)
{
    for (unsigned at = 0; at < part->places; at++)
        if (part->row[at].key)
            add(total, part->row[at].key, part->row[at].calls, part->row[at].bytes,
                part->row[at].ns);
}

void rows_write(const struct rows *table, FILE *out, const char *const names[])
{
    for (unsigned at = 0; at < table->places; at++) {
        const struct row *row = &table->row[at];
        if (!row->key)
            continue;
        struct row_kind kind = kind_of(row->key);
        fprintf(out, "row %s %d %d %d %d %llu %llu %llu\n", names[kind.op], kind.nonblocking,
            kind.bin, kind.comm_size, kind.far, (unsigned long long)row->calls,
            (unsigned long long)row->bytes, (unsigned long long)row->ns);
    }
}
