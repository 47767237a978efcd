"""The room of a launch: how many cores its ranks have, and on how many nodes.

A launch with more ranks than cores is declared oversubscribed. Ranks on hosts that the user's line
names, or on the nodes of a batch job, are not on this node: there the slots count. What cannot be
known is refused, because a wrongly declared default makes false gains.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autotune.config.cluster import Cluster
from autotune.config.scheduler import allocation
from autotune.errors import UsageError
from autotune.targets.launcher_line import LauncherLine
from runner.mpi.discover import adapter
from runner.mpi.hosts import Hosts
from runner.mpi.library import Library
from runner.mpi.srun import is_srun
from runner.scheduler import Allocation

_DESCRIBE = (
    "describe the machine: autotune cluster init NAME writes configs/clusters/NAME.toml; set nodes "
    "and cores_per_node in it, and give --cluster NAME"
)


@dataclass(frozen=True)
class Room:
    """The cores of a launch on all of its nodes together.

    ``on_other_nodes``: ranks may be on other nodes than this one, whose number is counted from
    ``hosts`` or from the batch job, not read from the definition of the cluster.
    """

    cores: int
    nodes: int = 1
    on_other_nodes: bool = False
    hosts: Mapping[str, int] | None = None

    @classmethod
    def of(cls, cluster: Cluster, library: Library, line: LauncherLine, ranks: int) -> Room:
        """The room of ``ranks`` ranks of a launcher's line on a cluster.

        Raises UsageError if the slots are not known or too few, RunnerUsageError for hosts that are
        not understood.
        """
        whole = cls(cluster.total_cores, cluster.nodes)
        if cluster.nodes > 1 or cluster.testbed is not None:
            return whole
        hosts = adapter(library).hosts(line.options, os.environ, Path.cwd())
        if hosts is not None:
            return whole if hosts.on_this_machine else cls._of_hosts(hosts, line, ranks, library)
        job = allocation(os.environ)
        if job.several:
            return cls._of_job(job, ranks)
        # A step has the CPUs of its job, which may be fewer than those of the node.
        has_own = is_srun(library.launcher) and job.slots is not None
        return cls(job.slots or whole.cores) if has_own else whole

    @classmethod
    def _of_hosts(cls, hosts: Hosts, line: LauncherLine, ranks: int, library: Library) -> Room:
        hosts = hosts.with_own_cores(len(os.sched_getaffinity(0)))
        total, names = hosts.total, ", ".join(sorted(hosts.slots))
        if ranks > total and hosts.open:
            raise UsageError(
                f"the number of slots of {', '.join(sorted(hosts.open))} is not known "
                f"({hosts.source}), so that {ranks} ranks may be more than the cores. Write it "
                f"down (slots=N in the file, HOST:N in the list), or {_DESCRIBE}",
                code="hosts.slots_unknown",
            )
        if ranks > total and adapter(library).counts_slots and not line.oversubscribe:
            raise UsageError(
                f"{ranks} ranks on {total} slots of {names} ({hosts.source}): the launcher "
                "refuses this. Give fewer ranks, more slots, or --oversubscribe, as in your line",
                code="hosts.too_few_slots",
            )
        return cls(max(total, 1), max(len(hosts.slots), 1), True, dict(hosts.slots))

    @classmethod
    def _of_job(cls, job: Allocation, ranks: int) -> Room:
        nodes = job.count or 2
        if job.slots is None and ranks > nodes:
            raise UsageError(
                f"this process is in a batch job of several nodes that does not say its slots, so "
                f"that {ranks} ranks may be more than the cores; {_DESCRIBE}",
                code="hosts.slots_unknown",
            )
        return cls(job.slots or nodes, nodes, True)
