/* The kinds of rounds of one thread, in an open hash table of fixed size. */

#include "rounds.h"

#include <string.h>

static struct round_kind *place_of(struct rounds *mine, uint64_t key)
{
    unsigned at = (unsigned)(key >> 32) & (ROUND_KINDS - 1);
    for (unsigned tries = 1; tries < ROUND_KINDS; tries++) {
        if (!mine->kind[at].key)
            mine->kind[at].key = key;
        if (mine->kind[at].key == key)
            break;
        at = (at + 1) & (ROUND_KINDS - 1);
    }
    return &mine->kind[at];
}

void rounds_end(struct rounds *mine)
{
    struct round_kind *kind = place_of(mine, mine->sent);
    kind->rounds++;
    kind->ns += mine->computed;
    if (mine->computed > kind->longest)
        kind->longest = mine->computed;
    kind->squares += (double)mine->computed * (double)mine->computed;
    mine->computed = 0;
    mine->sent = 0;
}

void rounds_restart(struct rounds *mine, int forget)
{
    mine->computed = 0;
    mine->sent = 0;
    if (forget)
        memset(mine->kind, 0, sizeof mine->kind);
}

void rounds_merge(struct rounds *total, const struct rounds *part)
{
    for (unsigned at = 0; at < ROUND_KINDS; at++) {
        if (!part->kind[at].rounds)
            continue;
        struct round_kind *kind = place_of(total, part->kind[at].key);
        kind->rounds += part->kind[at].rounds;
        kind->ns += part->kind[at].ns;
        if (part->kind[at].longest > kind->longest)
            kind->longest = part->kind[at].longest;
        kind->squares += part->kind[at].squares;
    }
}

void rounds_write(const struct rounds *mine, FILE *out)
{
    for (unsigned at = 0; at < ROUND_KINDS; at++)
        if (mine->kind[at].rounds)
            fprintf(out, "round %llu %llu %llu %.9e\n", (unsigned long long)mine->kind[at].rounds,
                (unsigned long long)mine->kind[at].ns, (unsigned long long)mine->kind[at].longest,
                mine->kind[at].squares);
}
