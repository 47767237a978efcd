/* The operations of runner/runtimes/core/atomic.py; each may lose its core just before. */
static _Thread_local uint64_t chance = 1;
static atomic_long progress;
static uint64_t toss(void)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance >> 11;
}

#ifdef BUFFERED
enum { HELD = 4 };
static _Thread_local struct { shared *place; word value; } held[HELD];
static _Thread_local int held_count;
static void flush(void)
{
    for (int i = 0; i < held_count; i++)
        atomic_store_explicit(held[i].place, held[i].value, memory_order_release);
    held_count = 0;
}
static void put(shared *place, word value)
{
    if (held_count == HELD) flush();
    held[held_count].place = place;
    held[held_count++].value = value;
}
static word peek(shared *place)
{
    if (toss() % 64 == 0) sched_yield();
    if (toss() % 16 == 0) flush();
    for (int i = held_count; i-- > 0;)
        if (held[i].place == place) return held[i].value;
    return atomic_load(place);
}
#else
static void flush(void) {}
static void put(shared *place, word value)
{
    if (toss() % 64 == 0) sched_yield();
    atomic_store_explicit(place, value, memory_order_release);
}
static word peek(shared *place)
{
    if (toss() % 64 == 0) sched_yield();
    return atomic_load(place);
}
#endif
static void before_change(void)
{
    flush();
    if (toss() % 64 == 0) sched_yield();
}
static word add_weakly(shared *place, word value)
{
    before_change();
    return atomic_fetch_add_explicit(place, value, memory_order_relaxed);
}
static word add(shared *place, word value)
{
    before_change();
    return atomic_fetch_add(place, value);
}
static word exchange(shared *place, word value)
{
    before_change();
    return atomic_exchange(place, value);
}
static void set_bits(shared *place, word bits)
{
    before_change();
    atomic_fetch_or(place, bits);
}
static void keep_bits(shared *place, word bits)
{
    before_change();
    atomic_fetch_and(place, bits);
}
static int swap_if(shared *place, word old, word value)
{
    before_change();
    return atomic_compare_exchange_strong(place, &old, value);
}
static void fence(void)
{
    before_change();
    atomic_thread_fence(memory_order_seq_cst);
}
/* load and store of a word that is atomic elsewhere: its lock is held. */
static word load(shared *place)
{
#ifdef BUFFERED
    for (int i = held_count; i-- > 0;)
        if (held[i].place == place) return held[i].value;
#endif
    return atomic_load_explicit(place, memory_order_relaxed);
}
#if WEAK == 9
static double peek_real(double *place) { return *place; }
static void put_real(double *place, double value) { *place = value; }
#else
static double peek_real(_Atomic double *place) { return atomic_load(place); }
static void put_real(_Atomic double *place, double value)
{
    atomic_store_explicit(place, value, memory_order_release);
}
#endif
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* dice.draw 127b3fb2e291 */
static word draw(worker *self, word below)
{
    self->dice ^= self->dice << 13;
    self->dice ^= self->dice >> 7;
    self->dice ^= self->dice << 17;
    return (self->dice >> 11 & 0xFFFFFFFFFF) % below;
}
