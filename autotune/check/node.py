"""The node on which a line is checked, read from /proc and /sys."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from autotune.check.launch_facts import NodeFacts, OtherJob
from runner.cpus import available_cpus
from runner.jobs import find_jobs
from runner.machine import cgroup_quota, describe_machine

_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_BALANCING = Path("/proc/sys/kernel/numa_balancing")
_PTRACE = Path("/proc/sys/kernel/yama/ptrace_scope")


def read_node(*, with_jobs: bool = True) -> NodeFacts:
    """This machine and the MPI jobs of others on it; some milliseconds."""
    machine = describe_machine()
    balancing = _number(_BALANCING)
    return NodeFacts(
        host=platform.node(),
        cpus=frozenset(os.sched_getaffinity(0)),
        online_cpus=available_cpus(),
        quota=cgroup_quota(),
        container=machine.container,
        ptrace_scope=_number(_PTRACE),
        huge_pages=_chosen(_text(_HUGE_PAGES)),
        numa_balancing=None if balancing is None else balancing > 0,
        numa_nodes=machine.numa_nodes,
        jobs=other_jobs() if with_jobs else (),
    )


def other_jobs() -> tuple[OtherJob, ...]:
    """The MPI jobs of others that run now; 0.1 ms for each process of the node."""
    return tuple(
        OtherJob(job.pid, job.command, tuple(rank.cpus or frozenset() for rank in job.ranks))
        for job in find_jobs()
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdecimal() else None


def _chosen(text: str) -> str:
    """The word in brackets of ``always [madvise] never``."""
    return text.partition("[")[2].partition("]")[0]
