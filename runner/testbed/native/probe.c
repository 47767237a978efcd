/* Measuring a path between two nodes with TCP: round trips of 8 bytes and a stream.
 *
 * Both ends look again and again instead of sleeping, as the ranks of an MPI program do.  During the
 * round trips they have real-time priority, below that of the delay line: on a machine that is busy
 * the figure would otherwise be the length of the others' time slices. */
#define _GNU_SOURCE
#include "testbed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHUNK (256 * 1024)
#define PATIENCE_S 60

static char chunk[CHUNK];

/* Read exactly `size` bytes; 0 at the end of the stream. */
static int receive(int fd, void *place, size_t size) {
    for (size_t have = 0; have < size;) {
        ssize_t got = recv(fd, (char *)place + have, size - have, MSG_DONTWAIT);
        if (got == 0) return 0;
        if (got > 0) have += (size_t)got;
        else if (errno == EAGAIN) sched_yield();
        else if (errno != EINTR) die("recv");
    }
    return 1;
}

static void send_all(int fd, const void *place, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t sent = send(fd, (const char *)place + done, size - done, 0);
        if (sent < 0) die("send");
        done += (size_t)sent;
    }
}

static void no_delay(int fd) {
    int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

static struct sockaddr_in address_of(const char *text, int port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, text, &at.sin_addr) != 1) {
        errno = EINVAL;
        die(text);
    }
    return at;
}

static void urgent(int yes) {
    struct sched_param priority = {.sched_priority = yes ? 1 : 0};
    sched_setscheduler(0, yes ? SCHED_FIFO : SCHED_OTHER, &priority);
}

/* Everything until the end of the stream; answers {bytes, nanoseconds from first to last}. */
static void swallow(int fd) {
    uint64_t answer[2] = {0, 0}, first = 0;
    for (;;) {
        ssize_t got = recv(fd, chunk, sizeof chunk, MSG_DONTWAIT);
        if (got == 0) break;
        if (got > 0) {
            uint64_t now = now_ns();
            if (!first) first = now;
            else answer[0] += (uint64_t)got;
            answer[1] = now - first;
        } else if (errno == EAGAIN) {
            sched_yield();
        } else if (errno != EINTR) {
            die("recv");
        }
    }
    send_all(fd, answer, sizeof answer);
}

int probe_serve(const char *address) {
    struct sockaddr_in at = address_of(address, 0);
    socklen_t size = sizeof at;
    alarm(PATIENCE_S);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 2))
        die(address);
    if (getsockname(listener, (struct sockaddr *)&at, &size)) die("getsockname");
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    int fd = accept(listener, NULL, NULL);
    if (fd < 0) die("accept");
    no_delay(fd);
    char message[8];
    urgent(1);
    while (receive(fd, message, sizeof message)) send_all(fd, message, sizeof message);
    urgent(0);
    close(fd);
    fd = accept(listener, NULL, NULL);
    if (fd < 0) die("accept");
    swallow(fd);
    return 0;
}

static int connect_to(const char *address, int port) {
    struct sockaddr_in at = address_of(address, port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at)) die(address);
    no_delay(fd);
    return fd;
}

static int smaller_first(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

int probe_measure(const char *address, int port, int pings, double stream_s) {
    char message[8] = "autotune";
    alarm(PATIENCE_S);
    if (pings < 1) return 2;
    uint64_t *times = calloc((size_t)pings, sizeof *times);
    if (!times) die("calloc");
    int fd = connect_to(address, port);
    urgent(1);
    for (int i = -3; i < pings; i++) { /* the first ones warm the path up */
        uint64_t began = now_ns();
        send_all(fd, message, sizeof message);
        if (!receive(fd, message, sizeof message)) die("the other end closed");
        if (i >= 0) times[i] = now_ns() - began;
    }
    urgent(0);
    close(fd);
    qsort(times, (size_t)pings, sizeof *times, smaller_first);
    uint64_t answer[2] = {0, 0};
    uint64_t ping_end = now_ns();
    fd = connect_to(address, port);
    while (now_ns() < ping_end + (uint64_t)(stream_s * 1e9)) send_all(fd, chunk, sizeof chunk);
    shutdown(fd, SHUT_WR);
    if (!receive(fd, answer, sizeof answer)) die("the other end closed");
    printf("{\"low_ns\": %llu, \"median_ns\": %llu, \"high_ns\": %llu, \"bytes\": %llu, \"ns\": %llu}\n",
           (unsigned long long)times[pings / 4], (unsigned long long)times[pings / 2],
           (unsigned long long)times[pings * 19 / 20], (unsigned long long)answer[0],
           (unsigned long long)answer[1]);
    return 0;
}
