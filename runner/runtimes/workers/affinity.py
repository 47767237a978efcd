"""The CPU that each worker is pinned to."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from runner.errors import RunnerError

CpuSet = tuple[int, ...]


def cpu_mask() -> CpuSet:
    """The CPUs this process may use."""
    return tuple(sorted(os.sched_getaffinity(0)))


def check_affinity(
    workers: int,
    cpus: CpuSet,
    affinity: str,
    error: type[RunnerError],
    switch: str = "--workers",
) -> None:
    """Refuse more workers than CPUs; raises ``error``, which names ``switch``."""
    if affinity != "none" and workers > len(cpus):
        raise error(
            f"{switch} {workers}, but this process may use only {len(cpus)} CPUs "
            f"({', '.join(map(str, cpus))}): give mpirun --bind-to none (or a wider --bind-to and "
            "--map-by with PE=), use fewer, or switch pinning off with --affinity none",
            code="workers.too_many",
        )


def cpu_places(workers: int, affinity: str, masks: Sequence[CpuSet], mine: int) -> list[int | None]:
    """A CPU for each worker of process ``mine``; ``masks`` are those of all processes of the node.

    Processes with the same mask take turns in it, so that with ``--bind-to none`` the workers of
    all processes do not share the first CPUs.
    """
    if affinity == "none":
        return [None] * workers
    cpus = masks[mine]
    order = list(cpus) if affinity == "compact" else order_by_package(cpus, package_of)
    before = sum(1 for other in masks[:mine] if other == cpus)
    return [order[(before * workers + w) % len(order)] for w in range(workers)]


def is_crowded(workers: int, masks: Sequence[CpuSet]) -> bool:
    """True if the processes of a node have more workers than CPUs."""
    return workers * len(masks) > len(set().union(*masks))


def order_by_package(cpus: CpuSet, package: Callable[[int], int]) -> list[int]:
    """The CPUs, ordered to take one from each package (socket) in turn."""
    groups: dict[int, list[int]] = {}
    for cpu in cpus:
        groups.setdefault(package(cpu), []).append(cpu)
    turns = sorted(
        (position, number, cpu)
        for number, group in enumerate(groups.values())
        for position, cpu in enumerate(group)
    )
    return [cpu for _, _, cpu in turns]


def package_of(cpu: int) -> int:
    """The socket of a CPU; 0 if the system does not report it."""
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id")
    try:
        return int(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0


def masks_on_node(comm: Any) -> tuple[list[CpuSet], int]:
    """The CPUs of each process of this node, and the index of this process.

    Collective; ``comm`` is None for one process without MPI.
    """
    mine = cpu_mask()
    if comm is None:
        return [mine], 0
    from mpi4py import MPI

    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    masks, number = node.allgather(mine), node.rank
    node.Free()
    return masks, number


def pin(cpu: int | None, error: type[RunnerError]) -> None:
    """Pin the calling thread; raises ``error`` if the system refuses."""
    if cpu is None:
        return
    try:
        os.sched_setaffinity(0, {cpu})
    except OSError as problem:
        raise error(
            f"a worker cannot be pinned to CPU {cpu} ({problem.strerror}): expected a CPU that "
            "this process may use; switch pinning off with --affinity none",
            code="workers.pinning",
        ) from None
