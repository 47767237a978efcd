/* The records of runner/runtimes/core/words.py, and what a round is like. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef WEAK
#define WEAK 0
#endif

#if WEAK == 9
#define PLAIN_OR_ATOMIC
#else
#define PLAIN_OR_ATOMIC _Atomic
#endif

typedef int64_t word;
typedef _Atomic word shared;
#define NEW_LINE _Alignas(64)

enum { PARKED, QUEUED, RUNNING, WOKEN, ENDED };
enum { COROUTINE, GRAPH, SUSPENDED };
#define WAITS ((word)1 << 32)
enum { OPEN, CLOSING, CLOSED };
enum { YIELDED, RAN_TO_END };
enum { BITS = 62, RANKS = 6, REGIONS = 72, WORKERS = 4, GUESTS = 2, TIMES = 40, EDGES = 8000, REQUESTS = 4096 };

struct rank;
struct part;
struct node;

typedef struct edge {
    shared value;
    struct node *source, *target;
    struct edge *next_input, *next_output;
    word lead; /* of the checks only */
} edge;

typedef struct node {
    struct part *part;
    struct rank *rank;
    shared *ready;
    word bit, remaining, iteration, step, posted, urgent, number;
    word fiber, middle; /* whether it has a stack, and stands in the middle of its function */
    NEW_LINE shared lock;
    word done, fan_in;
    edge *inputs, *outputs;
    shared gate;
    NEW_LINE shared unmet;
    NEW_LINE shared pending;
    uint64_t data[TIMES + 1]; /* of each execution, written once */
} node;

typedef struct part {
    struct rank *rank;
    word count, words, bodies_left, here, total, lazy;
    NEW_LINE shared away;
    struct { NEW_LINE shared bits; } ready[2];
    node nodes[REGIONS];
} part;

typedef struct worker {
    word number;
    struct rank *rank;
    uint64_t dice;
    NEW_LINE shared lock;
    shared head, tail;
    struct rank *ring[8];
    NEW_LINE shared asleep;
} worker;

typedef struct rank {
    word local, home, mode, entry, arrived, priority;
    struct worker *worker;
    struct node *owner;
    NEW_LINE shared state;
    part part;
} rank;
static struct {
    word workers, ranks, crowded, stealing, random, requests_each, others, looks, ordered, funnel;
    double spin_s, sleep_s;
    NEW_LINE shared live;
    NEW_LINE shared idle;
    NEW_LINE shared sleeping;
    shared watcher;
    NEW_LINE shared turns;
    NEW_LINE shared stop;
    NEW_LINE shared pending;
    NEW_LINE shared poll_lock;
    PLAIN_OR_ATOMIC double next_poll;
    double next_deep;
    word count;
    node *owners[REQUESTS];
    NEW_LINE shared post_lock;
    struct { node *node; word call; } incoming[REQUESTS]; /* call: it is to be made yet */
    shared incoming_count;
    NEW_LINE shared failed;
    NEW_LINE shared open;
    shared guests;
    worker worker[WORKERS], guest[GUESTS];
    rank rank[RANKS];
    edge edges[EDGES];
    _Atomic int edges_used;
} core;

/* What a round is like; written before the workers start. */
static struct {
    int regions, entries, times[4], late, lazy[RANKS][4], endless, talks[REGIONS], waits[REGIONS];
    struct { int target, source, neighbors, lead; } edge[300];
    int edge_count, neighbor[RANKS][RANKS], neighbors[RANKS];
} plan;
