/* The part of runner/native/message.py that has no MPI; a test finds random messages complete. */

/* message.watch 7b19beb08f28 */
static void watch(void)
{
    if (peek(&core.idle) > peek(&core.sleeping) || peek(&core.watcher) != 0) return;
    call_any();
}

/* message._append aa8988a983ac */
static void _append(node *n)
{
    if (core.count == REQUESTS) abort();
    core.owners[core.count++] = n;
}

/* message._keep 0e266d82fd05 */
static void _keep(node *n)
{
    word before = add(&core.pending, 1);
    if (try_lock(&core.poll_lock)) {
        _append(n);
        unlock(&core.poll_lock);
    } else {
        lock(&core.post_lock);
        word count = load(&core.incoming_count);
        if (count == REQUESTS) abort();
        core.incoming[count] = n;
        put(&core.incoming_count, count + 1);
        unlock(&core.post_lock);
    }
    if (before == 0 && peek(&core.sleeping) != 0) watch();
}

/* message._take_incoming a6c4cb602501 */
static void _take_incoming(void)
{
    lock(&core.post_lock);
    for (int i = 0; i < load(&core.incoming_count); i++) _append(core.incoming[i]);
    put(&core.incoming_count, 0);
    unlock(&core.post_lock);
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

/* message.poll 8aef0f12fa8f */
static int poll(worker *self)
{
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

/* message.poll_if_due 268262988a27 */
static void poll_if_due(worker *self)
{
    if (peek(&core.pending) == 0) return;
    if (now() >= peek_real(&core.next_poll)) poll(self);
}
