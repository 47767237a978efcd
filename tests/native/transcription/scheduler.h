/* runner/runtimes/core/scheduler.py */

/* scheduler._end_region 524d1b5268c5 */
static void _end_region(worker *self, node *n, word answer)
{
    n->posted = (answer & 0xFFFFFFFF) - (answer >> 32);
    end_body(self, n->part, n);
}

/* scheduler._run_regions 3bdfbdffe061 */
static void _run_regions(worker *self, rank *r, part *p)
{
    while (peek(&core.stop) == 0) {
        node *n = choose(self, p);
        if (!n) return;
        n->posted = 0;
        r->owner = n;
        if (n->fiber) {
            if (!resume_fiber(n)) return;
            _end_region(self, n, 0);
            poll_if_due(self);
            continue;
        }
        _end_region(self, n, body(n));
        poll_if_due(self);
    }
}

/* scheduler._run 48e1fefde9f9 */
static int _run(worker *self, rank *r)
{
    for (;;) {
        if (r->mode == SUSPENDED) {
            node *n = r->owner;
            if (peek(&n->pending) != WAITS) return 0;
            r->mode = GRAPH;
            if (!resume_fiber(n)) return 0;
            _end_region(self, r->owner, 0);
        }
        if (r->mode == GRAPH) {
            _run_regions(self, r, &r->part);
            if (peek(&core.stop) != 0) return 0;
            if (r->mode != GRAPH || !part_over(&r->part)) return 0;
            r->mode = COROUTINE;
        }
        int code = resume(self, r);
        if (code == RAN_TO_END) return 1;
        if (r->mode == COROUTINE) return 0;
    }
}

/* scheduler._turn 823048bb624a */
static void _turn(worker *self, rank *r)
{
    r->worker = self;
    self->rank = r;
    for (;;) {
        int ended = _run(self, r);
        self->rank = NULL;
        if (ended) {
            put(&r->state, ENDED);
            if (add(&core.live, -1) == 1) stop();
            break;
        }
        if (swap_if(&r->state, RUNNING, PARKED)) break;
        exchange(&r->state, RUNNING);
        self->rank = r;
        if (peek(&core.stop) != 0) break;
        poll_if_due(self);
    }
}

/* scheduler._sleep 23a60ec6d34a */
static int _sleep(worker *self, double length) 
{
#if WEAK == 6
    if (peek(&core.stop) != 0 || any_ready(self, 1)) return 0;
#endif
    put(&self->asleep, 1);
    add(&core.sleeping, 1);
    fence();
    int watches = 0, called = 0, caller = calls_mpi(self);
    if (caller && peek(&core.pending) != 0) watches = swap_if(&core.watcher, 0, 1);
    if (WEAK != 6 && (peek(&core.stop) != 0 || any_ready(self, 1)))
        put(&self->asleep, 0);
    else if (caller && core.funnel && peek(&core.incoming_count) != 0)
        put(&self->asleep, 0);
    else if (caller && !watches && peek(&core.watcher) == 0 && peek(&core.pending) != 0)
        put(&self->asleep, 0);
    else
        called = sleep_until_called(self, watches || core.others ? length : -1.0);
    add(&core.sleeping, -1);
    if (watches) put(&core.watcher, 0);
    return called;
}

/* scheduler._check_deadlock b78842dcf7ed */
static void _check_deadlock(void)
{
    word turns = peek(&core.turns);
    if (peek(&core.idle) != core.workers || peek(&core.guests) != 0) return;
    if (peek(&core.pending) != 0) return;
    for (int n = 0; n < core.workers; n++)
        if (waiting(&core.worker[n]) > 0) return;
    fence();
    if (peek(&core.turns) != turns || peek(&core.live) == 0) return;
    if (swap_if(&core.failed, 0, -1)) {
        if (!plan.endless) quit(4, "a deadlock was reported that is none");
        stop();
    }
}

/* scheduler._idle 8d7e95aff9a0 */
static rank *_idle(worker *self)
{
    double begin = now(), waited = begin, length = 20e-6;
    rank *r = NULL;
    word least = 2, looks = 0;
    add(&core.idle, 1);
    while (peek(&core.stop) == 0) {
        if (any_ready(self, least)) {
#if WEAK == 5
            add(&core.turns, 1);
            add(&core.idle, -1);
#else
            add(&core.idle, -1);
            add(&core.turns, 1);
#endif
            r = take(self, least);
            if (r) break;
            add(&core.idle, 1);
        }
        int polled = 0;
        if (peek(&core.pending) != 0) {
            polled = poll(self);
            if (any_ready(self, least) || (WEAK != 8 && peek(&core.pending) == 0)) continue;
        } else if (peek(&core.idle) == core.workers && peek(&core.guests) == 0) {
            _check_deadlock();
            continue;
        }
        double time = now();
        if (time - begin > 1e-6) least = 1;
        if (core.others && time - begin > 5e-6 && toss() % 8 == 0) break; /* host_of */
        if (looks > 1 || time - waited < core.spin_s) {
            looks--;
            if (core.crowded || !polled) sched_yield();
            continue;
        }
        if (_sleep(self, length)) {
            length = 20e-6;
            waited = now();
        } else {
            double grown = 1.25 * length < core.sleep_s ? 1.25 * length : core.sleep_s;
            double part = 0.05 * (time - waited), longest = 4.0 * core.sleep_s;
            if (part > longest) part = longest;
            length = grown > part ? grown : part;
            looks = 10;
        }
    }
    if (!r) {
        add(&core.idle, -1);
#if WEAK != 14
        add(&core.turns, 1);
#endif
    }
    if ((r || core.others) && peek(&core.sleeping) != 0) {
        if (core.stealing && any_ready(self, 1)) call_if_none_looks();
        if (peek(&core.pending) != 0) watch();
    }
    return r;
}

/* scheduler.work d4347c5018a8 */
static void *work(void *argument)
{
    worker *self = argument;
    chance = self->dice * 0x9E3779B97F4A7C15u | 1;
    while (peek(&core.stop) == 0) {
        rank *r = take(self, 2);
        if (!r) r = _idle(self);
        if (r) {
            _turn(self, r);
            poll_if_due(self);
        } else if (core.others)
            poll_if_due(self); /* visit: what it does elsewhere takes no time here */
    }
    flush();
    return NULL;
}
