"""Threads: how many compute on the node, against its cores and quota, and how they wait."""

from __future__ import annotations

from collections.abc import Iterator

from autotune.check.corrections import threads_variable, with_threads
from autotune.check.finding import Certainty, LaunchFinding, Weight
from autotune.check.launch_facts import LaunchFacts
from autotune.check.rule import LaunchRule
from autotune.wording import count


def _total(facts: LaunchFacts) -> int:
    return sum(facts.thread_counts)


def _weight(ratio: float) -> Weight:
    return Weight.OVER_TWICE if ratio >= 2 else Weight.TENTH


class Quota(LaunchRule):
    """The control group allows less processor time than the ranks and threads use."""

    code = "cgroup.quota"
    weight = Weight.OVER_TWICE
    summary = "the control group allows fewer CPUs than ranks and threads use"
    explanation = (
        "A container or batch job may have a quota of processor time (cpu.max) that is smaller "
        "than the number of cores it sees. When the threads have used it, the kernel stops all of "
        "them until the next period (0.1 s): ranks wait for ranks that are stopped. The cure is as "
        "many ranks times threads as the quota has CPUs, or a larger quota."
    )

    @staticmethod
    def exceeded(facts: LaunchFacts) -> bool:
        """True if more threads compute than the quota has CPUs, while cores would suffice."""
        quota = facts.node.quota
        return quota is not None and bool(facts.ranks) and _total(facts) > quota + 0.5

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if the quota is exceeded."""
        quota = facts.node.quota
        if quota is None or not self.exceeded(facts):
            return
        ranks, total = len(facts.ranks), _total(facts)
        each = max(1, int(quota) // ranks)
        line = facts.line
        if total > ranks:
            line = with_threads(line, facts, each)
        elif ranks > quota:
            line = line.with_ranks(max(1, int(quota)))
        yield self.finding(
            f"{count(ranks, 'rank')} with {count(total, 'thread')} together may use {quota:g} CPUs "
            f"(cpu.max); the node shows {facts.node.cores} cores",
            f"the kernel stops the ranks for {1 - quota / total:.0%} of the time",
            facts.certainty if total > ranks else Certainty.KNOWN,
            weight=_weight(total / quota),
            where="cpu.max",
            corrected_line=line.words,
            comparison=total > ranks,
            advice="or a larger quota: docker run --cpus, or the limits of the pod or job",
        )


class Cpuset(LaunchRule):
    """The control group or the shell allows fewer cores than there are ranks."""

    code = "cgroup.cpuset"
    weight = Weight.OVER_TWICE
    summary = "the launch may use only a part of the node's cores, and has more ranks"
    explanation = (
        "A container, a batch job or taskset may allow a few CPUs of a large node. A number of "
        "ranks that fits the node then shares these few. The CPUs are read from the mask of the "
        "shell and from the control group. The cure is as many ranks as CPUs are allowed, or to "
        "ask for more of them."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if the ranks would have cores without the restriction, and lack them now."""
        node, ranks = facts.node, facts.ranks_here
        if not ranks or node.cpus >= node.online_cpus or facts.line.is_srun:
            return
        if not node.cores < ranks <= len(node.online_cpus):
            return
        yield self.finding(
            f"{count(ranks, 'rank')} may use {len(node.cpus)} of the {len(node.online_cpus)} CPUs "
            "of this node (cpuset or taskset)",
            f"{ranks / node.cores:.2g} ranks in turns on each core",
            Certainty.KNOWN,
            weight=_weight(ranks / node.cores),
            where="cpuset",
            corrected_line=facts.line.with_ranks(node.cores).words,
            advice="or ask for more CPUs: docker run --cpuset-cpus, salloc --cpus-per-task",
        )


class Crowded(LaunchRule):
    """Ranks and their threads are more than the cores."""

    code = "threads.crowded"
    weight = Weight.OVER_TWICE
    summary = "ranks times threads are more than the cores"
    explanation = (
        "BLAS libraries and OpenMP start a thread for each core that a rank may use. N ranks that "
        "are not bound then start N times as many threads as there are cores, and every thread "
        "waits for others that have no core. Threads are counted in /proc, per rank; with --dry "
        "they are those that variables ask for. The cure is fewer threads: cores divided by ranks."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if ranks have several threads, and all together more than the cores."""
        ranks, total, cores = len(facts.ranks), _total(facts), facts.usable_cores
        if not ranks or total <= cores or total <= ranks or Quota.exceeded(facts):
            return
        each = max(1, cores // ranks)
        if each >= max(facts.thread_counts):
            return
        pools = sorted({pool for rank in facts.ranks for pool in rank.pools})
        would = "" if facts.certainty is Certainty.SEEN else ", as variables ask for"
        source = f" of {', '.join(pools)}" if pools else ""
        yield self.finding(
            f"{count(ranks, 'rank')} with {max(facts.thread_counts)} threads each{source}{would}: "
            f"{total} threads on {count(cores, 'core')}",
            f"{total / cores:.2g} threads in turns on each core; threads that wait for one "
            "another often take much longer",
            facts.certainty,
            weight=_weight(total / cores),
            where=threads_variable(facts),
            corrected_line=with_threads(facts.line, facts, each).words,
            comparison=True,
        )


_ACTIVE = {
    "OMP_WAIT_POLICY": ("active", "passive"),
    "GOMP_SPINCOUNT": ("inf", "0"),
    "KMP_BLOCKTIME": ("inf", "0"),
    "KMP_LIBRARY": ("turnaround", "throughput"),
}
"""Variables that let threads of OpenMP keep their core while they wait: how such a value begins,
and a value that gives it away."""


class ActiveWaiting(LaunchRule):
    """Threads wait actively though they outnumber the cores."""

    code = "threads.waiting"
    weight = Weight.OVER_TWICE
    summary = "threads that wait keep cores which other threads need"
    explanation = (
        "OMP_WAIT_POLICY=active, an infinite GOMP_SPINCOUNT or KMP_BLOCKTIME let a thread that "
        "waits at a barrier use its core all the time. That is fast while every thread has a core. "
        "With more threads than cores the threads that still work wait for a core until the "
        "kernel takes it away from one that waits. The cure is a passive policy, or fewer threads."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding for each variable, if ranks and threads outnumber the cores."""
        total, cores = _total(facts), facts.usable_cores
        if not facts.ranks or total <= cores or total <= len(facts.ranks):
            return
        variables = facts.rank_variables
        for name, (active, passive) in _ACTIVE.items():
            if variables.get(name, "").lower().startswith(active):
                yield self.finding(
                    f"{name}={variables[name]}, and {total} threads have {count(cores, 'core')}",
                    "threads that wait keep the cores that others need",
                    facts.certainty,
                    where=name,
                    corrected_line=facts.line.with_variable(name, passive).words,
                    comparison=True,
                )
