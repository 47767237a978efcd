/* A small cluster on one machine: what the parts of the program share. */
#ifndef AUTOTUNE_TESTBED_H
#define AUTOTUNE_TESTBED_H

#include <stdint.h>

#define MAX_NODES 64

/* One page that the delay line and the Python side both map.  runner/testbed/delay_line.py knows the
 * same order; every field is eight bytes. */
struct shared {
    volatile uint64_t latency_ns;   /* each way, what is left of it after calibration: settable */
    volatile uint64_t bytes_per_s;  /* of each link in each direction, 0 = unlimited: settable */
    volatile uint64_t packets;      /* delivered between nodes */
    volatile uint64_t bytes;        /* delivered between nodes */
    volatile uint64_t dropped;      /* not deliverable, or no memory */
    volatile uint64_t late_sum_ns;  /* delivered after it was due, summed over packets */
    volatile uint64_t late_max_ns;
    volatile uint64_t realtime;     /* 1 if the kernel gave real-time priority */
    volatile uint64_t flying;       /* bytes that are on their way at this moment */
    volatile uint64_t flying_max;   /* the most there were at once: settable, to 0 */
    volatile uint64_t flying_byte_ns; /* the sum over packets of their bytes times their way */
};

/* What one testbed is made of: addresses are SUBNET.1 to SUBNET.nodes; the host is SUBNET.254. */
struct plan {
    const char *name;
    const char *subnet;    /* the first three numbers: "198.18.7" */
    int nodes;
    int mtu;
    const char *scratch;   /* directory over which each node mounts a file system of its own */
    const char *hosts;     /* file that each node sees as /etc/hosts */
};

#define HOST_NUMBER 254

/* Make the device of the host (number HOST_NUMBER) in the current network namespace; returns the
 * descriptor.  Ends the process with a message on standard error if it cannot. */
int open_device(const struct plan *plan, const char *device, int number);

/* Start the process that keeps node `number` (from 1) alive; `*fd` becomes its device. */
int start_node(const struct plan *plan, int number, int *fd);

/* Carry packets until a node ends or somebody ends us.  fds[0] is the host, fds[i] node i. */
void carry(struct shared *shared, const int *fds, int nodes, int mtu, uint64_t spin_ns);

/* Measure a path: the far end, and the near end that prints one line of JSON. */
int probe_serve(const char *address);
int probe_measure(const char *address, int port, int pings, double stream_s);

_Noreturn void die(const char *what);
uint64_t now_ns(void);

#endif
