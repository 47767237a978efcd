/* A node: a process that does nothing but keep its namespaces alive (network, host name, mounts,
 * System V memory).  Nothing of it has a name in the file system, so nothing can be left behind:
 * when the process ends and nobody else is inside, the kernel takes everything down. */
#define _GNU_SOURCE
#include "testbed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static void set_address(struct ifreq *request, int control, unsigned long what, const char *text) {
    struct sockaddr_in *place = (struct sockaddr_in *)&request->ifr_addr;
    memset(place, 0, sizeof *place);
    place->sin_family = AF_INET;
    if (inet_pton(AF_INET, text, &place->sin_addr) != 1) {
        errno = EINVAL;
        die(text);
    }
    if (ioctl(control, what, request)) die(text);
}

static void bring_up(struct ifreq *request, int control) {
    if (ioctl(control, SIOCGIFFLAGS, request)) die("SIOCGIFFLAGS");
    request->ifr_flags |= IFF_UP | IFF_RUNNING;
    if (ioctl(control, SIOCSIFFLAGS, request)) die("SIOCSIFFLAGS");
}

/* A setting that not every kernel has: without it the node still works. */
static void try_write(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    ssize_t written = write(fd, text, strlen(text));
    (void)written;
    close(fd);
}

int open_device(const struct plan *plan, const char *device, int number) {
    struct ifreq request = {0};
    char address[64], no_ipv6[96];
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) die("/dev/net/tun");
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", device);
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    if (ioctl(fd, TUNSETIFF, &request)) die(device);
    int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (control < 0) die("socket");
    snprintf(no_ipv6, sizeof no_ipv6, "/proc/sys/net/ipv6/conf/%s/disable_ipv6", device);
    try_write(no_ipv6, "1");
    snprintf(address, sizeof address, "%s.%d", plan->subnet, number);
    set_address(&request, control, SIOCSIFADDR, address);
    set_address(&request, control, SIOCSIFNETMASK, "255.255.255.0");
    request.ifr_mtu = plan->mtu;
    if (ioctl(control, SIOCSIFMTU, &request)) die("SIOCSIFMTU");
    bring_up(&request, control);
    close(control);
    return fd;
}

static void separate(const struct plan *plan, int number) {
    char own[64];
    if (unshare(CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWNS | CLONE_NEWIPC)) die("unshare");
    snprintf(own, sizeof own, "%s%d", plan->name, number);
    if (sethostname(own, strlen(own))) die("sethostname");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) die("mount private");
    if (mount("tmpfs", plan->scratch, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")) die("mount TMPDIR");
    if (mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")) die("mount /dev/shm");
    if (mount(plan->hosts, "/etc/hosts", NULL, MS_BIND, NULL)) die("mount /etc/hosts");
    /* /sys shows the interfaces of the namespace in which it was mounted; UCX looks for them there.
     * Where the kernel does not allow it, all but UCX works. */
    if (mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL)) errno = 0;
    /* The kernel's default may be one that paces by a model of the Internet (bbr). */
    try_write("/proc/sys/net/ipv4/tcp_congestion_control", "cubic");
    struct ifreq loopback = {0};
    snprintf(loopback.ifr_name, sizeof loopback.ifr_name, "lo");
    int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (control < 0) die("socket");
    bring_up(&loopback, control);
    close(control);
}

static void send_descriptor(int channel, int fd) {
    char byte = 0, room[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    if (sendmsg(channel, &message, 0) != 1) die("sendmsg");
}

static int receive_descriptor(int channel) {
    int fd;
    char byte, room[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    if (recvmsg(channel, &message, MSG_CMSG_CLOEXEC) != 1) exit(1); /* the node said why */
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (!header) exit(1);
    memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
}

int start_node(const struct plan *plan, int number, int *fd) {
    int channel[2], parent = getpid();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel)) die("socketpair");
    int pid = fork();
    if (pid < 0) die("fork");
    if (pid > 0) {
        close(channel[1]);
        *fd = receive_descriptor(channel[0]);
        close(channel[0]);
        return pid;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    char own[16];
    snprintf(own, sizeof own, "node-%s", plan->name);
    prctl(PR_SET_NAME, own);
    signal(SIGCHLD, SIG_DFL);
    separate(plan, number);
    int device = open_device(plan, "net0", number);
    send_descriptor(channel[1], device);
    /* The delay line alone owns the devices: they go with it. */
    close_range(3, ~0u, 0);
    fclose(stdout);
    for (;;) pause();
}
