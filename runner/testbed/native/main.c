/* autotune-testbed: the delay line with its nodes, and the probe that measures a path. */
#define _GNU_SOURCE
#include "testbed.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static void node_ended(int signal_number) {
    (void)signal_number;
    /* A cluster that lost a node is no cluster: the other nodes go with us (PR_SET_PDEATHSIG). */
    _exit(3);
}

static struct shared *map_shared(const char *path) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) die(path);
    void *place = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (place == MAP_FAILED) die("mmap");
    close(fd);
    return place;
}

static void claim_cpu(int cpu, struct shared *shared) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) die("sched_setaffinity");
    /* A rank that spins on this CPU must give way at once; without the right to that the delay
     * line still works, less exactly.  Nodes were started before: they do not inherit it. */
    struct sched_param priority = {.sched_priority = 10};
    shared->realtime = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
    prctl(PR_SET_TIMERSLACK, 1);
}

static int line(char **words) {
    struct plan plan = {
        .name = words[0], .subnet = words[1], .nodes = atoi(words[2]), .mtu = atoi(words[3]),
        .scratch = words[4], .hosts = words[5],
    };
    struct shared *shared = map_shared(words[6]);
    int cpu = atoi(words[7]);
    uint64_t spin_ns = strtoull(words[8], NULL, 10);
    int fds[MAX_NODES + 1], pids[MAX_NODES + 1];
    char own[16], device[16];
    if (plan.nodes < 1 || plan.nodes > MAX_NODES) {
        fprintf(stderr, "nodes out of range\n");
        return 1;
    }
    /* Nobody waits for us; whoever started us reads our output until we close it. */
    int child = fork();
    if (child < 0) die("fork");
    if (child > 0) _exit(0);
    snprintf(own, sizeof own, "delay-%s", plan.name);
    prctl(PR_SET_NAME, own);
    signal(SIGCHLD, node_ended);
    snprintf(device, sizeof device, "tb-%s", plan.name);
    for (int i = 1; i <= plan.nodes; i++) pids[i] = start_node(&plan, i, &fds[i]);
    fds[0] = open_device(&plan, device, HOST_NUMBER);
    claim_cpu(cpu, shared);
    printf("%d", getpid());
    for (int i = 1; i <= plan.nodes; i++) printf(" %d", pids[i]);
    printf("\n");
    fflush(stdout);
    fclose(stdout);
    carry(shared, fds, plan.nodes, plan.mtu, spin_ns);
    return 1;
}

int main(int count, char **words) {
    if (count == 11 && !strcmp(words[1], "line")) return line(words + 2);
    if (count == 3 && !strcmp(words[1], "serve")) return probe_serve(words[2]);
    if (count == 6 && !strcmp(words[1], "measure"))
        return probe_measure(words[2], atoi(words[3]), atoi(words[4]), atof(words[5]));
    fprintf(stderr, "started by autotune testbed, not by hand\n");
    return 2;
}
