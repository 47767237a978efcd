/* The delay line: every packet is read from the device of its sender, waits, and is written to the
 * device of its receiver.
 *
 * A link is full duplex.  A packet occupies the sender's link for size/rate, then (cut through: the
 * two overlap on an idle network) the receiver's link until both have carried it, then travels for
 * the latency.  Nothing is ever lost for want of room: TCP's own windows bound the queues. */
#define _GNU_SOURCE
#include "testbed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NEVER UINT64_MAX
#define BURST 16 /* packets read from one device before the clock is looked at again */

struct packet {
    struct packet *next;
    uint64_t came, due;
    uint32_t length;
    unsigned char data[];
};

struct link {
    int fd;
    uint64_t up_free, down_free; /* when the link has carried all it was given so far */
    uint64_t last_due;
    struct packet *first, *last; /* on their way to this node, in order of due */
};

static struct link links[MAX_NODES + 1];
static int link_count;
static size_t largest;

static int number_of(const unsigned char *packet, ssize_t length) {
    if (length < 20 || packet[0] >> 4 != 4) return -1;
    int last = packet[19];
    if (last == HOST_NUMBER) return 0;
    return last >= 1 && last < link_count ? last : -1;
}

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t due_at(struct shared *shared, struct link *from, struct link *to, ssize_t length, uint64_t now) {
    uint64_t rate = shared->bytes_per_s;
    uint64_t due = now;
    if (rate) {
        uint64_t occupied = (uint64_t)length * 1000000000u / rate;
        from->up_free = later(now, from->up_free) + occupied;
        to->down_free = later(from->up_free, to->down_free + occupied);
        due = to->down_free;
    }
    /* A latency that was made smaller meanwhile must not let packets overtake. */
    to->last_due = later(to->last_due, due + shared->latency_ns);
    return to->last_due;
}

static void deliver(int fd, const void *data, size_t length, struct shared *shared) {
    ssize_t written;
    do written = write(fd, data, length);
    while (written < 0 && errno == EINTR);
    if (written < 0) shared->dropped++;
}

static void take(struct shared *shared, int index) {
    static struct packet *room;
    struct link *from = &links[index];
    for (int i = 0; i < BURST; i++) {
        if (!room && !(room = malloc(sizeof *room + largest))) return;
        ssize_t length = read(from->fd, room->data, largest);
        if (length <= 0) return;
        int target = number_of(room->data, length);
        if (target < 0 || target == index) {
            shared->dropped++;
        } else if (target == 0 || index == 0) {
            /* The host is where mpirun runs: its network for starting programs has no delay. */
            deliver(links[target].fd, room->data, (size_t)length, shared);
        } else {
            struct link *to = &links[target];
            struct packet *kept = room;
            if ((size_t)length < largest / 4) {
                /* Short packets must not each hold the room of the longest. */
                if (!(kept = malloc(sizeof *kept + (size_t)length))) {
                    shared->dropped++;
                    continue;
                }
                memcpy(kept->data, room->data, (size_t)length);
            } else {
                room = NULL;
            }
            kept->next = NULL;
            kept->length = (uint32_t)length;
            kept->came = now_ns();
            kept->due = due_at(shared, from, to, length, kept->came);
            shared->flying += kept->length;
            if (shared->flying > shared->flying_max) shared->flying_max = shared->flying;
            if (to->last) to->last->next = kept;
            else to->first = kept;
            to->last = kept;
        }
    }
}

/* Write what is due; returns when the next packet is. */
static uint64_t give(struct shared *shared) {
    uint64_t next = NEVER;
    for (int i = 1; i < link_count; i++) {
        struct link *to = &links[i];
        while (to->first) {
            struct packet *packet = to->first;
            uint64_t now = now_ns();
            if (packet->due > now) {
                if (packet->due < next) next = packet->due;
                break;
            }
            uint64_t late = now - packet->due;
            deliver(to->fd, packet->data, packet->length, shared);
            shared->packets++;
            shared->bytes += packet->length;
            shared->flying -= packet->length;
            shared->flying_byte_ns += packet->length * (now - packet->came);
            shared->late_sum_ns += late;
            if (late > shared->late_max_ns) shared->late_max_ns = late;
            to->first = packet->next;
            if (!to->first) to->last = NULL;
            free(packet);
        }
    }
    return next;
}

static void wake_at(int timer, uint64_t when) {
    struct itimerspec at = {.it_value = {(time_t)(when / 1000000000u), (long)(when % 1000000000u)}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
}

void carry(struct shared *shared, const int *fds, int nodes, int mtu, uint64_t spin_ns) {
    struct epoll_event events[MAX_NODES + 2];
    int poller = epoll_create1(EPOLL_CLOEXEC);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (poller < 0 || timer < 0) die("epoll");
    link_count = nodes + 1;
    largest = (size_t)mtu + 64;
    for (int i = 0; i <= link_count; i++) {
        int fd = i < link_count ? fds[i] : timer;
        if (i < link_count) links[i].fd = fd;
        struct epoll_event wanted = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &wanted)) die("epoll_ctl");
    }
    uint64_t armed = NEVER;
    for (;;) {
        uint64_t next = give(shared);
        int timeout = -1;
        if (next != NEVER) {
            if (next <= now_ns() + spin_ns) {
                timeout = 0; /* a timer would wake us too late: look again and again */
            } else if (next != armed) {
                wake_at(timer, next - spin_ns);
                armed = next;
            }
        }
        int count = epoll_wait(poller, events, link_count + 1, timeout);
        if (count < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < count; i++) {
            if ((int)events[i].data.u32 < link_count) {
                take(shared, (int)events[i].data.u32);
            } else {
                uint64_t expired;
                ssize_t got = read(timer, &expired, sizeof expired);
                (void)got;
            }
        }
    }
}
