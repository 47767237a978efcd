/* What Python's functions do: ranks that enter graphs and wait for each other, and bodies. */
static pthread_mutex_t python = PTHREAD_MUTEX_INITIALIZER;
static int arrived;
static void quit(int status, const char *text)
{
    fprintf(stderr, "%s\n", text);
    _exit(status);
}
static void link_to(rank *r, rank *source, int neighbors)
{
    for (int i = 0; i < plan.edge_count; i++) {
        node *target = &r->part.nodes[plan.edge[i].target];
        node *other = &source->part.nodes[plan.edge[i].source];
        if (plan.edge[i].neighbors != neighbors || (target == other && plan.edge[i].lead)) continue;
        int used = atomic_fetch_add(&core.edges_used, 1);
        if (used >= EDGES) abort();
        link_nodes(&core.edges[used], target, other, plan.edge[i].lead);
    }
}
/* A rank's function: enter the graph several times, register neighbours late, wait for all. */
static int resume(worker *self, rank *r)
{
    if (r->entry % 2 == 1 && r->entry < 2 * plan.entries) { /* a barrier after each entry */
        int wait;
        flush();
        pthread_mutex_lock(&python);
        if (!r->arrived) {
            r->arrived = 1;
            if (++arrived % core.ranks == 0)
                for (int i = 0; i < core.ranks; i++)
                    if (&core.rank[i] != r) wake(&core.rank[i], 0);
        }
        wait = arrived < core.ranks * (r->entry / 2 + 1);
        flush();
        pthread_mutex_unlock(&python);
        if (wait) return YIELDED;
        r->entry++;
        r->arrived = 0;
    }
    if (r->entry == 2 * plan.entries) return over(&r->part) ? RAN_TO_END : YIELDED;
    int entry = r->entry++ / 2;
    if (entry == plan.late)
        for (int i = 0; i < plan.neighbors[r->local]; i++)
            link_to(r, &core.rank[plan.neighbor[r->local][i]], 1);
    enter_part(self, &r->part, plan.times[entry], 0, 1, plan.lazy[r->local][entry]);
    r->mode = GRAPH;
    return YIELDED;
}
/* A region: its value follows from its inputs, so an early start gives another one, and a race. */
static word body(node *n)
{
    word execution = n->done, posted = 0;
    uint64_t value = (uint64_t)(execution + 1) * 0x9E3779B97F4A7C15u + n->number;
    for (edge *e = n->inputs; e; e = e->next_input) {
        word from = execution + e->lead - 1;
        if (from < 0) continue;
        if (e->source->data[from] == 0) quit(3, "a region ran before its dependency");
        value += e->source->data[from] * (0xD6E8FEB86659FD93u + 2 * (uint64_t)e->source->number);
    }
    n->data[execution] = value | 1;
    if (plan.talks[n->number % plan.regions]) {
        posted = core.requests_each;
        for (int i = 0; i < posted; i++) start_message(n->rank->worker, n);
    }
    atomic_fetch_add_explicit(&progress, 1, memory_order_relaxed);
    return posted;
}
