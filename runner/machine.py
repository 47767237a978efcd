"""The machine: its hardware, and a fingerprint under which times may be compared."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from runner.files.paths import exists

_CPU = Path("/sys/devices/system/cpu")
_GIB = 1 << 30


@dataclass(frozen=True)
class Machine:
    """One host, as available to this process. Unknown texts are "", unknown numbers 0."""

    hostname: str
    architecture: str
    cpu_model: str
    cores: int
    """Physical cores this process may use (affinity and cgroup quota)."""
    hardware_threads: int
    """Hardware threads this process may use (affinity only)."""
    sockets: int
    numa_nodes: int
    caches: dict[str, int]
    """Bytes of one cache of each kind, "L1d" to "L3"."""
    memory_bytes: int
    kernel: str
    governor: str
    virtualised: str
    """Name of the hypervisor or "yes"; "" on bare metal."""
    container: str
    """Kind of container; "" outside."""

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits; equal for machines whose times may be compared.

        The fingerprint covers the architecture, processor model, usable cores and threads, sockets,
        NUMA nodes, caches, memory (whole GiB) and virtualisation. It does not cover the host name
        (the nodes of a cluster are alike), the kernel, the governor or the container; those are
        stored beside it.
        """
        parts = [
            self.architecture,
            self.cpu_model,
            self.cores,
            self.hardware_threads,
            self.sockets,
            self.numa_nodes,
            sorted(self.caches.items()),
            round(self.memory_bytes / _GIB),
            self.virtualised,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def describe_machine() -> Machine:
    """Describe this machine; reads only /proc and /sys (a few ms)."""
    threads = sorted(os.sched_getaffinity(0))
    return Machine(
        hostname=platform.node(),
        architecture=platform.machine(),
        cpu_model=_cpu_model(),
        cores=_usable_cores(threads),
        hardware_threads=len(threads),
        sockets=len({_topology(cpu, "physical_package_id") for cpu in threads}),
        numa_nodes=max(1, len(list(Path("/sys/devices/system/node").glob("node[0-9]*")))),
        caches=_caches(threads[0]),
        memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        kernel=platform.release(),
        governor=_text(_CPU / f"cpu{threads[0]}/cpufreq/scaling_governor"),
        virtualised=_hypervisor(),
        container=_container(),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _cpu_model() -> str:
    # x86 says "model name"; other architectures use other keys or none.
    info = _text(Path("/proc/cpuinfo"))
    for key in ("model name", "cpu", "Hardware", "CPU part", "uarch"):
        match = re.search(rf"^{key}\s*:\s*(.+)$", info, re.MULTILINE)
        if match:
            return match[1].strip()
    return platform.processor()


def _topology(cpu: int, name: str) -> str:
    return _text(_CPU / f"cpu{cpu}/topology/{name}") or "0"


def _usable_cores(threads: list[int]) -> int:
    siblings = {_topology(cpu, "thread_siblings_list") for cpu in threads}
    # If the kernel does not say, every thread counts as a core.
    cores = len(threads) if siblings == {"0"} else len(siblings)
    quota = cgroup_quota()
    return cores if quota is None else max(1, min(cores, int(quota)))


def cgroup_quota() -> float | None:
    """CPUs that the control groups above this process allow (v2 and v1), or None."""
    quotas = []
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        number, controllers, place = line.split(":", 2)
        if number == "0" and not controllers:
            root, read = Path("/sys/fs/cgroup"), _quota_v2
        elif "cpu" in controllers.split(","):
            root, read = Path("/sys/fs/cgroup") / controllers, _quota_v1
        else:
            continue
        group = root / place.lstrip("/")
        # A limit of any parent group applies, too; a container may show only the top group.
        quotas += [read(g) for g in (group, *group.parents) if g == root or root in g.parents]
    limits = [quota for quota in quotas if quota is not None]
    return min(limits, default=None)


def _quota_v2(group: Path) -> float | None:
    words = _text(group / "cpu.max").split()
    return int(words[0]) / int(words[1]) if len(words) == 2 and words[0] != "max" else None


def _quota_v1(group: Path) -> float | None:
    quota = _text(group / "cpu.cfs_quota_us")
    period = _text(group / "cpu.cfs_period_us")
    usable = quota.isdigit() and period.isdigit() and int(period) > 0
    return int(quota) / int(period) if usable else None


def _caches(cpu: int) -> dict[str, int]:
    sizes = {}
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    for index in sorted((_CPU / f"cpu{cpu}/cache").glob("index[0-9]*")):
        size = re.fullmatch(r"(\d+)([KMG]?)", _text(index / "size"))
        if size is not None:
            kind = {"Data": "d", "Instruction": "i"}.get(_text(index / "type"), "")
            sizes[f"L{_text(index / 'level')}{kind}"] = int(size[1]) * units.get(size[2], 1)
    return sizes


def _hypervisor() -> str:
    kind = _text(Path("/sys/hypervisor/type"))
    if kind:
        return kind
    vendor = _text(Path("/sys/class/dmi/id/sys_vendor"))
    product = _text(Path("/sys/class/dmi/id/product_name"))
    for name in ("QEMU", "KVM", "VMware", "VirtualBox", "Xen", "Microsoft", "Amazon EC2", "Google"):
        if name.lower() in f"{vendor} {product}".lower() and "metal" not in product.lower():
            return name
    flags = re.search(r"^flags\s*:(.*)$", _text(Path("/proc/cpuinfo")), re.MULTILINE)
    return "yes" if flags and "hypervisor" in flags[1].split() else ""


def _container() -> str:
    if exists("/.dockerenv"):
        return "docker"
    if exists("/run/.containerenv"):
        return "podman"
    for variable, name in (("APPTAINER_NAME", "apptainer"), ("SINGULARITY_NAME", "singularity")):
        if os.environ.get(variable):
            return name
    groups = _text(Path("/proc/1/cgroup"))
    for name in ("kubepods", "docker", "lxc", "containerd"):
        if name in groups:
            return name
    return ""
