/* The part of runner/runtimes/core/message.py that has no MPI; a test finds random messages complete. */

/* message.watch 5270c2bd5b24 */
static void watch(void)
{
    if (core.funnel) {
        call_worker(&core.worker[0]);
        return;
    }
    if (peek(&core.idle) > peek(&core.sleeping) || peek(&core.watcher) != 0) return;
    call_any();
}

/* message._append aa8988a983ac */
static void _append(node *n)
{
    if (core.count == REQUESTS) abort();
    core.owners[core.count++] = n;
}

/* message.calls_mpi d33575cff912 */
static int calls_mpi(worker *self)
{
    return !core.funnel || self == &core.worker[0];
}

/* message._new_posted 80c8d9fd5766 */
static void _new_posted(node *n, word call)
{
    word count = load(&core.incoming_count);
    if (count == REQUESTS) abort();
    core.incoming[count].node = n;
    core.incoming[count].call = call;
    put(&core.incoming_count, count + 1);
}

/* message._move 3be42fb1c0d2 */
static void _move(node *n)
{
    add(&core.pending, 1);
    lock(&core.post_lock);
    _new_posted(n, 1);
    exchange(&core.post_lock, 0);
    if (WEAK != 15 && peek(&core.sleeping) != 0) call_worker(&core.worker[0]);
}

/* message._keep 10ce14f30a90 */
static void _keep(node *n)
{
    word before = add(&core.pending, 1);
    if (try_lock(&core.poll_lock)) {
        _append(n);
        unlock(&core.poll_lock);
    } else {
        lock(&core.post_lock);
        _new_posted(n, 0);
        unlock(&core.post_lock);
    }
    if (before == 0 && peek(&core.sleeping) != 0) watch();
}

/* message._take_incoming 61df08009e6c */
static void _take_incoming(void)
{
    lock(&core.post_lock);
    for (int i = 0; i < load(&core.incoming_count); i++) {
        node *n = core.incoming[i].node;
        if (core.incoming[i].call) {
            unlock(&core.post_lock);
            _append(n); /* _call */
            lock(&core.post_lock);
        } else
            _append(n);
    }
    put(&core.incoming_count, 0);
    unlock(&core.post_lock);
}

/* message.before_others be52a6875245 */
static void before_others(void)
{
    if (core.funnel && peek(&core.incoming_count) != 0) {
        lock(&core.poll_lock);
        _take_incoming();
        unlock(&core.poll_lock);
    }
}

/* message.start d064dc964bc8 */
static void start_message(worker *self, node *n)
{
    if (calls_mpi(self)) {
        before_others();
        _keep(n);
    } else
        _move(n);
}

/* message._test b6969660f8ca */
static int _test(worker *self)
{
    static node *done[REQUESTS];
    int found = 0;
    for (int i = 0; i < core.count;)
        if (toss() % 3 == 0) {
            done[found++] = core.owners[i];
            core.owners[i] = core.owners[--core.count];
        } else
            i++;
    for (int i = 0; i < found; i++) requests_done(self, done[i], 1);
    if (found) add(&core.pending, -found);
    return found;
}

/* message.poll b8593b0f57f7 */
static int poll(worker *self)
{
    if (!calls_mpi(self)) return 0;
    if (!try_lock(&core.poll_lock)) return 0;
    if (peek(&core.incoming_count) != 0) _take_incoming();
    if (core.count != 0) {
        double begin = now();
        word calls = core.looks;
        int deep = calls > 1 && begin >= core.next_deep;
        while (!_test(self) && deep && calls > 1) calls--;
        if (deep) {
            double end = now();
            core.next_deep = end + 20 * (end - begin);
        }
    }
    put_real(&core.next_poll, now() + 4e-6);
    unlock(&core.poll_lock);
    return 1;
}

/* message.poll_if_due 9cfd4dea3ae7 */
static void poll_if_due(worker *self)
{
    if (peek(&core.pending) == 0) return;
    if (!calls_mpi(self)) return;
    if (now() >= peek_real(&core.next_poll)) poll(self);
}
