/* runner/runtimes/core/fiber.py: here a function that waits is one that is called again. */

/* fiber._look 917aa635ace7 */
static void _look(node *n)
{
    word left = toss() % 3;
    if (left == 0) return;
    while (left > 0 && peek(&n->pending) != WAITS && peek(&core.stop) == 0) {
        if (calls_mpi(n->rank->worker)) poll(n->rank->worker);
        left--;
    }
}

/* fiber._wait 5f80a710c02e */
static int _wait(rank *r, node *n)
{
    if (!n->middle) {
        word posted = n->posted;
        n->posted = 0;
        if (add(&n->pending, posted + WAITS) + posted != 0) _look(n);
    }
    if (peek(&n->pending) != WAITS) {
        r->mode = SUSPENDED;
        return 0; /* leave */
    }
    add(&n->pending, -WAITS);
    return 1;
}

/* fiber.wait_all 4068bff70380 */
static int wait_all(rank *r)
{
    node *n = r->owner;
    if (n->posted == 0 && !n->middle) return 1;
    return _wait(r, n);
}

/* fiber.resume 4acbb38e1ba8 */
static int resume_fiber(node *n)
{
    if (!n->middle) n->posted = body(n);
    n->middle = !wait_all(n->rank);
    return !n->middle;
}
