/* Rounds of one thread: it computes and sends, then waits for others; and so on. */

#ifndef AUTOTUNE_ROUNDS_H
#define AUTOTUNE_ROUNDS_H

#include <stdint.h>
#include <stdio.h>

#define ROUND_KINDS 64 /* a power of two; rounds of further kinds share a place */

/* Rounds that sent the same.  ns: outside of MPI in them, in the longest, and the sum of the
   squares. */
struct round_kind {
    uint64_t key, rounds, ns, longest;
    double squares;
};

struct rounds {
    uint64_t left; /* when the thread left MPI last */
    uint64_t computed; /* nanoseconds outside of MPI since the last round */
    uint64_t sent; /* what it has sent since, as one number; 0: nothing */
    struct round_kind kind[ROUND_KINDS];
};

/* A call was entered and left. */
static inline void rounds_called(struct rounds *mine, uint64_t entered, uint64_t left)
{
    mine->computed += entered - mine->left;
    mine->left = left;
}

/* Something was sent: the order within a round does not matter. */
static inline void rounds_sent(struct rounds *mine, uint64_t op, uint64_t bin, uint64_t to)
{
    uint64_t what = (op << 37 ^ bin << 32 ^ (to & UINT32_MAX)) + UINT64_C(0x9e3779b97f4a7c15);
    what = (what ^ what >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    mine->sent += (what ^ what >> 32) | 1;
}

void rounds_end(struct rounds *mine);

/* The thread may have waited for another process: a round is over if it had sent something. */
static inline void rounds_waited(struct rounds *mine, int timed)
{
    if (mine->sent && timed)
        rounds_end(mine);
}

/* The timed part of the program begins; forget: the rounds before it do not count. */
void rounds_restart(struct rounds *mine, int forget);

void rounds_merge(struct rounds *total, const struct rounds *part);
void rounds_write(const struct rounds *mine, FILE *out);

#endif
