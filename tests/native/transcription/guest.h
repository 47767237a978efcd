/* runner/runtimes/core/guest.py: here a guest is a thread that has no other work. */

/* guest.open_region 8aab04b24c5a */
static node *open_region(part *p)
{
    for (int i = 0; i < p->words; i++)
        for (word bits = peek(&p->ready[i].bits); bits != 0; bits &= bits - 1) {
            node *n = &p->nodes[i * BITS + __builtin_ctzll(bits)];
            if (!plan.talks[n->number % plan.regions]) return n; /* entry_of */
        }
    return NULL;
}

/* guest.is_open 5d5f4a22be03 */
static int is_open(rank *r) { return r->mode == GRAPH && open_region(&r->part) != NULL; }

/* guest.offer_of 9a32284c9f46 */
static worker *offer_of(void)
{
    for (int n = 0; n < core.workers; n++)
        if (waiting(&core.worker[n]) > 0) return &core.worker[n]; /* offers */
    return NULL;
}

/* guest.take_open 1723cf5af8ca */
static rank *take_open(worker *home)
{
    rank *found = NULL;
    word mask = 7;
    if (waiting(home) <= 0) return NULL;
    lock(&home->lock);
    word head = load(&home->head), tail = load(&home->tail), place = tail;
    while (place > head && !found) {
        place--;
        if (is_open(home->ring[place & mask])) found = home->ring[place & mask];
    }
    if (found) {
        for (; place < tail - 1; place++) home->ring[place & mask] = home->ring[(place + 1) & mask];
        put(&home->tail, tail - 1);
    }
    unlock(&home->lock);
    return found;
}

/* guest.run_one 2cabf3a212c7 */
static void run_one(worker *guest, rank *r)
{
    part *p = &r->part;
    node *n = open_region(p);
    if (!n) return;
    keep_bits(n->ready, ~n->bit);
    if (peek(&n->unmet) != 0) return;
    put(&n->unmet, 1);
    r->worker = guest;
    guest->rank = r;
    n->posted = 0;
    body(n);
    end_body(guest, p, n);
    guest->rank = NULL;
}

/* guest.has_ready 0c2b583c5eb0 */
static int has_ready(part *p)
{
    for (int i = 0; i < p->words; i++)
        if (peek(&p->ready[i].bits) != 0) return 1;
    return 0;
}

/* guest.give_back 4c1332b9becb */
static void give_back(rank *r)
{
    if ((WEAK == 12 || !has_ready(&r->part)) && !part_over(&r->part))
        if (swap_if(&r->state, RUNNING, PARKED)) return;
    exchange(&r->state, QUEUED);
    push(r, 1);
}

/* guest.visit b94d2177fed8 */
static void visit(worker *guest)
{
    if (!offer_of()) return; /* host_of */
    add(&core.guests, 1);
#if WEAK != 11
    add(&core.turns, 1);
#endif
    if (peek(&core.open) != 0 && peek(&core.stop) == 0) {
        worker *home = offer_of();
        rank *r = home ? take_open(home) : NULL;
        if (r) {
            exchange(&r->state, RUNNING);
            run_one(guest, r);
#if WEAK == 10
            add(&core.guests, -1);
#endif
            give_back(r);
            if (peek(&core.stop) != 0) call_all();
#if WEAK == 10
            return;
#endif
        }
    }
    add(&core.guests, -1);
}

/* guest.close e0289efd9c6f */
static void close_core(void)
{
    exchange(&core.open, 0);
    while (peek(&core.guests) != 0) sched_yield();
}

static void *be_guest(void *argument)
{
    worker *self = argument;
    chance = self->dice * 0x9E3779B97F4A7C15u | 1;
    while (peek(&core.open) != 0) {
        visit(self);
        flush();
        if (toss() % 4 == 0) sched_yield();
    }
    flush();
    return NULL;
}
