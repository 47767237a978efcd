/* runner/runtimes/core/queue.py */

/* queue.lock 13c48aa06c5b */
static void lock(shared *place)
{
    while (exchange(place, 1) != 0) {
        int looks = 0;
        while (peek(place) != 0)
            if (++looks > 100) {
                looks = 0;
                flush();
                sched_yield();
            }
    }
}

/* queue.unlock 72b4c9d6a418 */
static void unlock(shared *place)
{
#if WEAK == 1
    flush();
    atomic_store_explicit(place, 0, memory_order_relaxed);
#else
    put(place, 0);
#endif
}

/* queue.try_lock 461f37be075a */
static int try_lock(shared *place) { return peek(place) == 0 && exchange(place, 1) == 0; }

/* queue.call_worker af521a047f24 */
static int call_worker(worker *w)
{
    if (peek(&w->asleep) == 0 || !swap_if(&w->asleep, 1, 0)) return 0;
    syscall(SYS_futex, &w->asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return 1;
}

/* queue.call_any 530193235864 */
static void call_any(void)
{
    for (int n = 0; n < core.workers; n++)
        if (call_worker(&core.worker[n])) return;
}

/* queue.call_all ff681a08d35d */
static void call_all(void)
{
    for (int n = 0; n < core.workers; n++) call_worker(&core.worker[n]);
}

/* queue.call_if_none_looks fa7fd2004a41 */
static void call_if_none_looks(void)
{
    if (peek(&core.idle) <= peek(&core.sleeping)) call_any();
}

/* queue._call_for 4f49c3196a29 */
static void _call_for(worker *home)
{
    if (!call_worker(home) && core.stealing) call_if_none_looks();
}

/* queue._make_room e5bbebf64f3c */
static word _make_room(worker *home, rank *r, word mask, word tail)
{
    word place = tail, head = load(&home->head);
    while (place > head) {
        rank *before = home->ring[(place - 1) & mask];
        if (before->priority >= r->priority) break;
        home->ring[place & mask] = before;
        place--;
    }
    return place;
}

/* queue.push b0cf4d30c70f */
static void push(rank *r, word front)
{
    worker *home = &core.worker[r->home];
    word mask = 7;
#if WEAK == 7
    word sleeping = peek(&core.sleeping);
#endif
    lock(&home->lock);
    if (front) {
        word head = load(&home->head) - 1;
        home->ring[head & mask] = r;
        put(&home->head, head);
    } else {
        word tail = load(&home->tail), place = tail;
        if (core.ordered) place = _make_room(home, r, mask, tail);
        home->ring[place & mask] = r;
        put(&home->tail, tail + 1);
    }
#if WEAK == 7
    unlock(&home->lock);
    if (sleeping != 0) _call_for(home);
#else
    exchange(&home->lock, 0);
    if (peek(&core.sleeping) != 0) _call_for(home);
#endif
}

/* queue.sleep 311c896da4a4 */
static int sleep_until_called(worker *self, double seconds)
{
    struct timespec t = {0, (long)(1e9 * seconds)};
    flush();
    syscall(SYS_futex, &self->asleep, FUTEX_WAIT_PRIVATE, 1, seconds >= 0 ? &t : NULL, NULL, 0);
    return 1 - (int)exchange(&self->asleep, 0);
}

/* queue.waiting b8aa5146d535 */
static word waiting(worker *w)
{
    word tail = peek(&w->tail);
    return tail - peek(&w->head);
}

/* queue._shuffle cf3bc5899d78 */
static void _shuffle(worker *taker, worker *w, word mask, word head, word tail)
{
    word ends[2] = {head, tail - 1};
    for (int i = 0; i < 2; i++) {
        word other = head + draw(taker, tail - head);
        rank *r = w->ring[ends[i] & mask];
        w->ring[ends[i] & mask] = w->ring[other & mask];
        w->ring[other & mask] = r;
    }
}

/* queue.pop a58859093a41 */
static rank *pop(worker *w, worker *taker)
{
    rank *r = NULL;
    word mask = 7;
    if (waiting(w) <= 0) return NULL;
    lock(&w->lock);
    word head = load(&w->head), tail = load(&w->tail);
    if (tail > head) {
        if (core.random) _shuffle(taker, w, mask, head, tail);
        if (taker != w) {
            r = w->ring[(tail - 1) & mask];
            put(&w->tail, tail - 1);
        } else {
            r = w->ring[head & mask];
            put(&w->head, head + 1);
        }
    }
    unlock(&w->lock);
    return r;
}

/* queue.take e206d4beaca1 */
static rank *take(worker *self, word least)
{
    rank *r = pop(self, self);
    if (!r && core.stealing)
        for (int step = 1; step < core.workers && !r; step++) {
            worker *other = &core.worker[(self->number + step) % core.workers];
            if (waiting(other) >= least) r = pop(other, self);
        }
    if (r) {
#if WEAK == 4
        put(&r->state, RUNNING);
#else
        exchange(&r->state, RUNNING);
#endif
    }
    return r;
}

/* queue.any_ready 9a1136e69ebb */
static int any_ready(worker *self, word least)
{
    if (waiting(self) > 0) return 1;
    if (core.stealing)
        for (int n = 0; n < core.workers; n++)
            if (waiting(&core.worker[n]) >= least) return 1;
    return 0;
}

/* queue.wake 45491c252c2f */
static void wake(rank *r, word front)
{
    for (;;) {
        word state = peek(&r->state);
        if (state == PARKED) {
            if (swap_if(&r->state, PARKED, QUEUED)) {
                push(r, front);
                return;
            }
        } else if (state == RUNNING) {
            if (swap_if(&r->state, RUNNING, WOKEN)) return;
        } else
            return;
    }
}

/* queue.stop c404f6c09410 */
static void stop(void)
{
    add(&core.stop, 1);
    call_all();
}
