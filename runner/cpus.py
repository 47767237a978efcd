"""Sets of CPUs in the kernel's list form ("0-1,4"), their cores, and binding a process to them.

Functions here read and write the lists, find the hardware threads of a core, and divide cores among
jobs. :class:`CpuBinding` keeps this process and its descendants on a set of CPUs.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Iterable
from pathlib import Path

from runner.errors import RunnerError

_LIST = re.compile(r"\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*")
_CPU = Path("/sys/devices/system/cpu")
_NODES = Path("/sys/devices/system/node")
_CGROUPS = Path("/sys/fs/cgroup")


def cpus_of(text: str) -> frozenset[int]:
    """The CPUs of a kernel list such as "0-1,4"."""
    cpus: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.strip():
            cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)


def parse_cpus(text: str) -> frozenset[int]:
    """The CPUs of a list that a user wrote; raises ``ValueError`` with the expected form."""
    words = "".join(text.split())
    ranges = [part.split("-") for part in words.split(",")]
    if not _LIST.fullmatch(words) or any(int(r[0]) > int(r[-1]) for r in ranges):
        raise ValueError('expected CPU numbers and ascending ranges such as "0-1,4"')
    return cpus_of(words)


def cpu_list(cpus: Iterable[int]) -> str:
    """``cpus`` as the shortest kernel list; "" for the empty set."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and runs[-1][-1] == cpu - 1:
            runs[-1][1:] = [cpu]
        else:
            runs.append([cpu])
    return ",".join("-".join(map(str, run)) for run in runs)


def with_siblings(cpus: Iterable[int]) -> frozenset[int]:
    """``cpus`` and every hardware thread that shares a core with one of them."""
    return frozenset().union(*(_core_of(cpu) for cpu in cpus))


def count_cores(cpus: Iterable[int]) -> int:
    """Number of physical cores that ``cpus`` touch; a CPU that this machine lacks counts as one
    core.
    """
    return len({_core_of(cpu) for cpu in cpus})


def core_numbers(cpus: Iterable[int], *, machine: Iterable[int] | None = None) -> frozenset[int]:
    """The numbers, in hwloc's logical order, of the cores that ``cpus`` touch; launchers use this
    order.

    The kernel's numbers jump between sockets and hardware threads. hwloc numbers the cores in the
    order of the tree of sockets, NUMA nodes and caches. Each level is ordered by its first CPU.
    CPUs that this control group may not use are left out. ``machine`` is the machine's set of CPUs;
    None: read from the kernel.
    """
    present = frozenset(machine) if machine is not None else available_cpus()
    selection = frozenset(cpus)
    return frozenset(number for number, core in enumerate(_cores(present)) if core & selection)


def core_sets(jobs: int, cpus: Iterable[int]) -> list[frozenset[int]]:
    """``cpus`` divided into ``jobs`` disjoint sets of equally many whole cores; the rest is unused.

    Each set lies in one NUMA node if all sets can; else the sets follow one another in hwloc's
    order. Raises ``ValueError`` if there are fewer cores than jobs.
    """
    cores = _cores(frozenset(cpus))
    size = len(cores) // jobs
    if not size:
        raise ValueError(f"{jobs} jobs cannot have a core each: there are {len(cores)}")
    nodes = [
        list(group) for _, group in itertools.groupby(cores, key=lambda core: _node(min(core)))
    ]
    within = [chunk for node in nodes for chunk in _chunks(node, size)]
    chunks = within if len(within) >= jobs else _chunks(cores, size)
    return [frozenset().union(*chunk) for chunk in chunks[:jobs]]


def _chunks(cores: list[frozenset[int]], size: int) -> list[list[frozenset[int]]]:
    return [cores[i : i + size] for i in range(0, len(cores) - size + 1, size)]


def _cores(cpus: frozenset[int]) -> list[frozenset[int]]:
    """The cores of ``cpus`` in hwloc's order, each as the set of its CPUs in ``cpus``."""
    return sorted({_core_of(cpu) & cpus for cpu in cpus}, key=lambda core: _place(min(core)))


def _node(cpu: int) -> str:
    """Name of the NUMA node of ``cpu``; "" if unknown."""
    files = _NODES.glob("node*/cpulist")
    return next((file.parent.name for file in files if cpu in _cpus_in_file(file)), "")


def memory_domain(cpus: Iterable[int]) -> int:
    """The number of the NUMA node that contains all these CPUs; 0 if there are several."""
    nodes = {_node(cpu) for cpu in cpus}
    number = nodes.pop().removeprefix("node") if len(nodes) == 1 else ""
    return int(number) if number.isdigit() else 0


def _core_of(cpu: int) -> frozenset[int]:
    return _cpus_in_file(_CPU / f"cpu{cpu}/topology/thread_siblings_list") or frozenset({cpu})


def _place(cpu: int) -> tuple[int, ...]:
    """The first CPU of each unit that contains ``cpu``, from the largest unit down to its core."""
    topology = _CPU / f"cpu{cpu}/topology"
    files = [topology / "package_cpus_list", topology / "die_cpus_list"]
    files += sorted((_CPU / f"cpu{cpu}/cache").glob("index*/shared_cpu_list"))
    around = [_cpus_in_file(file) for file in files]
    around += [
        cpus for file in _NODES.glob("node*/cpulist") if cpu in (cpus := _cpus_in_file(file))
    ]
    sets = [unit for unit in around if unit] + [_core_of(cpu)]
    return tuple(min(unit) for unit in sorted(sets, key=len, reverse=True))


def available_cpus() -> frozenset[int]:
    """Online CPUs of this control group, regardless of this process's affinity."""
    online = _cpus_in_file(_CPU / "online")
    try:
        groups = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return online
    for line in groups:
        _, controllers, place = line.split(":", 2)
        if not controllers:
            file = _CGROUPS / place.lstrip("/") / "cpuset.cpus.effective"
        elif "cpuset" in controllers.split(","):
            file = _CGROUPS / "cpuset" / place.lstrip("/") / "cpuset.effective_cpus"
        else:
            continue
        if allowed_cpus := _cpus_in_file(file):
            return allowed_cpus & online
    return online


def _cpus_in_file(file: Path) -> frozenset[int]:
    """The CPUs listed in a kernel file; the empty set if it does not exist."""
    try:
        return cpus_of(file.read_text(encoding="ascii"))
    except OSError:
        return frozenset()


class CpuBinding:
    """Context manager: all threads of this process run on ``cpus``; None changes nothing.

    The tuner itself is bound, too: its computation between two runs would be foreign load for a
    measurement on the other CPUs. Raises :class:`RunnerError` if this process may not use one of
    the CPUs.
    """

    def __init__(self, cpus: frozenset[int] | None) -> None:
        mine = os.sched_getaffinity(0)
        if cpus is not None and not (cpus and cpus <= mine):
            raise RunnerError(
                f"cpus = {cpu_list(cpus)!r} of the cluster definition: this process may use "
                f"only the CPUs {cpu_list(mine)} (those of the machine, or fewer in a "
                "container, a batch job or under taskset); choose from these",
                code="cluster.cpus",
            )
        self._cpus = cpus
        self._before: dict[int, set[int]] = {}

    def __enter__(self) -> CpuBinding:
        if self._cpus is None:
            return self
        self._before = {thread: os.sched_getaffinity(thread) for thread in _threads()}
        _move({thread: set(self._cpus) for thread in self._before})
        return self

    def __exit__(self, *_: object) -> None:
        if self._before:
            main = self._before[os.getpid()]
            # A thread started meanwhile has inherited the binding.
            _move({thread: self._before.get(thread, main) for thread in _threads()})
            self._before = {}


def _threads() -> list[int]:
    return [int(place.name) for place in Path("/proc/self/task").iterdir()]


def _move(places: dict[int, set[int]]) -> None:
    for thread, cpus in places.items():
        # The thread may have ended.
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(thread, cpus)
