/* runner/runtimes/core/graph.py */
static word add_edge(edge *e, word value)
{
    return WEAK == 2 ? add_weakly(&e->value, value) : add(&e->value, value);
}
static word add_unmet(node *n, word value)
{
    return WEAK == 3 ? add_weakly(&n->unmet, value) : add(&n->unmet, value);
}

/* graph.make_ready 9c0a2571ae59 */
static void make_ready(worker *self, node *n)
{
    set_bits(n->ready, n->bit);
    if (n->rank != self->rank) wake(n->rank, n->urgent);
}

/* graph._any_bit c44cfda5b3ae */
static int _any_bit(worker *self, word bits)
{
    word skip = draw(self, __builtin_popcountll(bits));
    while (skip-- > 0) bits &= bits - 1;
    return __builtin_ctzll(bits);
}

/* graph.choose a65fcede77ae */
static node *choose(worker *self, part *p)
{
    for (int i = 0; i < p->words; i++) {
        word bits = peek(&p->ready[i].bits);
        while (bits != 0) {
            int at = core.random ? _any_bit(self, bits) : __builtin_ctzll(bits);
            keep_bits(&p->ready[i].bits, ~((word)1 << at));
            node *n = &p->nodes[i * BITS + at];
            if (peek(&n->unmet) == 0) {
                put(&n->unmet, 1);
                return n;
            }
            bits = peek(&p->ready[i].bits);
        }
    }
    return NULL;
}

/* graph._await_next 44689694868c */
static void _await_next(worker *self, node *n)
{
    word fan_in = n->fan_in, settled = 1;
    if (peek(&n->unmet) == 1)
        put(&n->unmet, fan_in + 1);
    else
        add_unmet(n, fan_in);
    for (edge *e = n->inputs; e; e = e->next_input)
        if (add_edge(e, -1) != 0) settled++;
    if (peek(&n->gate) != OPEN && swap_if(&n->gate, CLOSING, CLOSED)) settled--;
    if (settled != 0 && add_unmet(n, -settled) == settled) make_ready(self, n);
}

/* graph.finish d7c2634cdff4 */
static void finish(worker *self, node *n)
{
    lock(&n->lock);
    n->done++;
    _await_next(self, n);
    for (edge *e = n->outputs; e; e = e->next_output)
        if (add_edge(e, 1) == -1)
            if (add_unmet(e->target, -1) == 1) make_ready(self, e->target);
    unlock(&n->lock);
    if (n->rank == self->rank)
        n->part->here++;
    else {
        add(&n->part->away, 1);
        wake(n->rank, 0);
    }
}

/* graph.end_body f6c079e8799b */
static void end_body(worker *self, part *p, node *n)
{
    word left = --n->remaining;
    n->iteration += n->step;
    p->bodies_left--;
    if (left == 0) put(&n->gate, CLOSING);
    word posted = n->posted;
    if (posted != 0 && add(&n->pending, posted) + posted != 0) return;
    finish(self, n);
}

/* graph.requests_done bf3eba5a97f3 */
static void requests_done(worker *self, node *n, word count)
{
    word before = add(&n->pending, -count);
    if (before == count)
        finish(self, n);
#if WEAK != 13
    else if (before == WAITS + count)
        wake(n->rank, 0);
#endif
}

/* graph.enter_part b0bc095510f5 */
static void enter_part(worker *self, part *p, word count, word first, word step, word lazy)
{
    p->lazy = lazy;
    p->bodies_left = p->count * count;
    p->total += p->count * count;
    if (count == 0) return;
    for (int i = 0; i < p->count; i++) {
        node *n = &p->nodes[i];
        n->iteration = first;
        n->step = step;
        n->remaining = count;
        if (exchange(&n->gate, OPEN) == CLOSED && add_unmet(n, -1) == 1) make_ready(self, n);
    }
}

/* graph.part_over b9cbaed106d9 */
static int part_over(part *p)
{
    if (p->bodies_left != 0) return 0;
    if (p->lazy) return 1;
    return p->here + peek(&p->away) == p->total;
}

/* exports.over 83f74d0dd726 */
static int over(part *p)
{
    return p->bodies_left == 0 && p->here + peek(&p->away) == p->total;
}

/* graph.link_nodes 2b0224511fdb */
static void link_nodes(edge *e, node *target, node *source, word lead)
{
    node *first = target < source ? target : source, *second = target < source ? source : target;
    lock(&first->lock);
    if (second != first) lock(&second->lock);
    word value = source->done - target->done - lead;
    atomic_store_explicit(&e->value, value, memory_order_relaxed);
    e->source = source;
    e->target = target;
    e->lead = lead;
    e->next_output = source->outputs;
    source->outputs = e;
    e->next_input = target->inputs;
    target->inputs = e;
    target->fan_in++;
    if (value < 0) {
        add_unmet(target, 1);
        keep_bits(target->ready, ~target->bit);
    }
    if (second != first) unlock(&second->lock);
    unlock(&first->lock);
}
