/* The lock-free part of the compiled core (runner/runtimes/core) in C, for ThreadSanitizer.
 *
 * Each function is named as in Python and keeps its order of operations. Words that Python changes
 * with load and store only are plain fields, so the sanitizer sees whether they have one writer at
 * a time; all others are atomic, with the memory orders of runner/runtimes/core/atomic.py. Left out: the
 * log, times by kind, async regions, Python's messages ("outside") and MPI itself (a test finds a
 * random message complete).
 *
 *     transcription SEED ROUNDS SECONDS
 *
 * Each round is a random graph with random neighbours and messages, run by 1 worker and by 2 to 4,
 * with 0 to 2 guests.
 * Exit status 0: equal data and exact counts. 3: wrong data. 4: a deadlock reported that is none.
 * 5: a lost call (nothing happened for 5 s). 6: a deadlock that was not reported.
 *
 * -DBUFFERED delays every put, as a processor's store buffer may. -DWEAK=N breaks one rule:
 * 1 unlock is relaxed, 2 the count of an edge is relaxed, 3 that of a region's dependencies is,
 * 4 take stores RUNNING instead of exchanging it, 5 _idle counts the turn before it is not idle,
 * 6 _sleep looks before it counts as asleep, 7 push looks for sleepers before the rank is there,
 * 8 _idle sleeps after the last message without another look, 9 next_poll is a plain word,
 * 10 a guest goes before it has put the rank back, 11 it counts no turn, 12 it parks a rank that has
 * another ready region, 13 the last message of a region that waits does not wake its rank, 14 an
 * idle worker that looks elsewhere counts no turn, 15 nobody calls the worker that makes MPI calls.
 *
 * A comment before a function names what it transcribes, and the digest of that text;
 * tests/native/test_transcription.py compares.
 */

#include "words.h"
#include "atomic.h"
#include "queue.h"
#include "graph.h"
#include "message.h"
#include "python.h"
#include "fiber.h"
#include "scheduler.h"
#include "guest.h"

static void make_plan(void)
{
    memset(&plan, 0, sizeof plan);
    plan.regions = toss() % 8 ? 1 + toss() % 6 : 60 + toss() % 11;
    plan.entries = 1 + toss() % 3;
    plan.late = toss() % plan.entries;
    plan.endless = toss() % 10 == 0;
    for (int i = 0; i < plan.entries; i++) plan.times[i] = toss() % 13;
    for (int i = 0; i < plan.regions; i++) plan.talks[i] = toss() % 4 == 0;
    for (int i = 0; i < plan.regions; i++) plan.waits[i] = plan.talks[i] && toss() % 2;
    core.ranks = 1 + toss() % RANKS;
    for (int target = 0; target < plan.regions; target++) {
        int wanted = toss() % 4;
        while (wanted-- > 0) { /* in one iteration a region waits for earlier ones only */
            int i = plan.edge_count++, lead = target > 0 && toss() % 2;
            plan.edge[i].target = target;
            plan.edge[i].source = toss() % (lead ? target : plan.regions);
            plan.edge[i].neighbors = toss() % 2;
            plan.edge[i].lead = lead;
        }
    }
    if (plan.endless) { /* two regions wait for each other, from the second entry on */
        plan.times[plan.entries - 1] = 3;
        int i = plan.edge_count;
        plan.edge[i].target = plan.edge[i + 1].source = 0;
        plan.edge[i].source = plan.edge[i + 1].target = plan.regions;
        plan.edge[i].lead = plan.edge[i + 1].lead = 1;
        plan.edge_count += 2;
        plan.regions++;
    }
    for (int r = 0; r < core.ranks; r++) {
        for (int other = 0; other < core.ranks; other++)
            if (other != r && toss() % 2) plan.neighbor[r][plan.neighbors[r]++] = other;
        for (int i = 0; i < plan.entries; i++) plan.lazy[r][i] = toss() % 2;
    }
}
static uint64_t run_plan(int workers, int guests)
{
    word ranks = core.ranks;
    memset(&core, 0, sizeof core);
    arrived = 0;
    core.ranks = core.live = ranks;
    core.workers = workers;
    core.others = guests != 0;
    core.open = 1;
    core.crowded = toss() % 2;
    core.looks = toss() % 2 ? 1 : 10;
    core.random = toss() % 2;
    core.stealing = toss() % 3 != 0;
    core.ordered = toss() % 2;
    core.funnel = toss() % 3 == 0;
    core.requests_each = 1 + toss() % 3;
    core.spin_s = toss() % 2 ? 0 : 20e-6;
    core.sleep_s = 200e-6;
    int all_at_first = toss() % 3 == 0;
    for (int w = 0; w < workers; w++) {
        core.worker[w].number = w;
        core.worker[w].dice = toss() | 1;
    }
    for (int g = 0; g < guests; g++) {
        core.guest[g].number = workers + g;
        core.guest[g].dice = toss() | 1;
    }
    for (int i = 0; i < ranks; i++) {
        rank *r = &core.rank[i];
        part *p = &r->part;
        r->local = i;
        r->home = all_at_first ? 0 : i * workers / ranks;
        r->priority = toss() % 3;
        p->rank = r;
        p->count = plan.regions;
        p->words = (plan.regions + BITS - 1) / BITS;
        for (int n = 0; n < plan.regions; n++) {
            node *made = &p->nodes[n];
            made->part = p;
            made->rank = r;
            made->number = i * plan.regions + n;
            made->ready = &p->ready[n / BITS].bits;
            made->bit = (word)1 << n % BITS;
            made->urgent = n % 5 == 0;
            made->gate = CLOSED;
            made->unmet = 1;
            made->fiber = plan.waits[n];
        }
        worker *home = &core.worker[r->home];
        home->ring[home->tail++ & 7] = r;
        r->state = QUEUED;
    }
    for (int i = 0; i < ranks; i++) link_to(&core.rank[i], &core.rank[i], 0);
    flush();
    pthread_t thread[WORKERS], visitor[GUESTS];
    for (int w = 0; w < workers; w++) pthread_create(&thread[w], NULL, work, &core.worker[w]);
    for (int g = 0; g < guests; g++) pthread_create(&visitor[g], NULL, be_guest, &core.guest[g]);
    for (int w = 0; w < workers; w++) pthread_join(thread[w], NULL);
    close_core();
    for (int g = 0; g < guests; g++) pthread_join(visitor[g], NULL);
    if (plan.endless) {
        if (core.failed == 0) quit(6, "a deadlock was not reported");
        return 0;
    }
    uint64_t sum = 0, total = 0;
    for (int i = 0; i < plan.entries; i++) total += plan.times[i];
    for (int i = 0; i < ranks; i++)
        for (int n = 0; n < plan.regions; n++) {
            node *made = &core.rank[i].part.nodes[n];
            if (made->done != (word)total || made->data[total] || core.pending)
                quit(3, "a region ran too often or not often enough");
            for (uint64_t k = 0; k < total; k++) sum = sum * 31 + made->data[k];
        }
    return sum;
}
static void *watchdog(void *argument)
{
    (void)argument;
    for (long before = -1;;) {
        sleep(5);
        long found = atomic_load(&progress);
        if (found == before) quit(5, "a call was lost: nothing happens any more");
        before = found;
    }
    return NULL;
}
int main(int count, char **words)
{
    if (count != 4) quit(2, "usage: transcription SEED ROUNDS SECONDS");
    pthread_t thread;
    pthread_create(&thread, NULL, watchdog, NULL);
    double begin = now(), limit = atof(words[3]);
    long round = 0, rounds = atol(words[2]);
    for (; round < rounds && now() - begin < limit; round++) {
        chance = (uint64_t)(atol(words[1]) + round + 1) * 0x9E3779B97F4A7C15u | 1;
        make_plan();
        uint64_t alone = run_plan(1, 0);
        if (run_plan(2 + toss() % 3, 0) != alone) quit(3, "other data than with one worker");
        int guests = 1 + toss() % GUESTS;
        if (run_plan(1 + toss() % 3, guests) != alone) quit(3, "other data than without guests");
        atomic_fetch_add(&progress, 1);
    }
    printf("%ld rounds, %ld regions\n", round, atomic_load(&progress));
    return 0;
}
