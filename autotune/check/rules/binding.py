"""Binding: the cores of each rank against its threads, the other ranks, and other jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from autotune.check.corrections import on_cpus, unbound, with_cores_each, with_threads
from autotune.check.finding import Certainty, LaunchFinding, Weight
from autotune.check.launch_facts import LaunchFacts, OtherJob, RankFacts
from autotune.check.launch_line import LaunchLine
from autotune.check.rule import LaunchRule
from autotune.check.rules.slurm import CpusPerTask
from autotune.wording import count
from runner.cpus import count_cores, cpu_list, with_siblings


def _cores_each(facts: LaunchFacts, threads: int) -> int:
    """Cores that a rank can have: one for each thread, if they suffice for all ranks."""
    return max(1, min(threads, facts.usable_cores // max(1, facts.ranks_here)))


def _with_room(facts: LaunchFacts, threads: int) -> LaunchLine | None:
    """The line with a core for each thread, and with fewer threads where cores do not suffice."""
    cores = _cores_each(facts, threads)
    line = with_cores_each(facts, cores)
    return line if line is None or cores == threads else with_threads(line, facts, cores)


class OneCore(LaunchRule):
    """A rank computes with more threads than it has cores."""

    code = "binding.one_core"
    weight = Weight.OVER_TWICE
    summary = "the threads of a rank share the cores to which the rank is bound"
    explanation = (
        "Launchers bind each rank to a core if nothing else is asked: Open MPI for 1 or 2 ranks "
        "without being told, srun for one CPU per task. All threads of a rank inherit its cores, "
        "so that 8 threads may run in turns on one core while the others stay idle. The masks are "
        "read from the ranks; threads are counted in /proc, and with --dry they are those that "
        "OMP_NUM_THREADS asks for. The cure is a core for each thread."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if a rank has fewer cores than threads while cores of the node are free."""
        crowded = [rank for rank in facts.ranks if _lacks_cores(rank)]
        if not crowded or TwoRanks.shared(facts) or CpusPerTask.applies(facts):
            return
        worst = max(crowded, key=lambda rank: len(rank.threads) / count_cores(rank.cpus))
        cpus = frozenset().union(*worst.threads)
        threads, cores = len(worst.threads), count_cores(cpus)
        if _cores_each(facts, threads) <= cores:
            return  # There are no more cores: it is a matter of the number of threads.
        line = _with_room(facts, threads)
        share = "share" if facts.certainty is Certainty.SEEN else "would share"
        yield self.finding(
            f"{count(threads, 'thread')} of rank {worst.rank} {share} {count(cores, 'core')} "
            f"({_named(cpus)}), while the node has {facts.node.cores}",
            f"{threads} threads in turns on {count(cores, 'core')}: up to {threads / cores:.2g} "
            "times as long",
            facts.certainty,
            weight=Weight.OVER_TWICE if threads >= 2 * cores else Weight.TENTH,
            where=f"rank {worst.rank}",
            corrected_line=None if line is None else line.words,
            comparison=True,
        )


def _lacks_cores(rank: RankFacts) -> bool:
    """True if the threads of a rank are confined to fewer cores than they are."""
    cpus = frozenset().union(*rank.threads)
    return bool(rank.cpus) and len(rank.threads) > count_cores(cpus)


class TwoRanks(LaunchRule):
    """Ranks are bound to the same core though there are enough cores."""

    code = "cores.two_ranks"
    weight = Weight.OVER_TWICE
    summary = "two ranks are bound to the same cores while others are free"
    explanation = (
        "More ranks are bound to a set of cores than it has, and the node has free cores. The "
        "ranks then run in turns, and each waits for the other one. It comes from a list of CPUs "
        "that names a core twice, from a rankfile for another machine, or from a mask that is the "
        "same for all ranks. The masks are read from the ranks."
    )

    @staticmethod
    def shared(facts: LaunchFacts) -> tuple[frozenset[int], int] | None:
        """A set of CPUs with more ranks than cores, and their number; None if there is none."""
        if len(facts.ranks) < 2 or len(facts.ranks) > facts.usable_cores:
            return None
        masks = Counter(rank.cpus for rank in facts.ranks if rank.cpus)
        if facts.line.is_srun and len(masks) == 1:
            return None  # These are the CPUs of the job.
        for cpus in masks:
            inside = sum(number for other, number in masks.items() if other <= cpus)
            if cpus < facts.node.cpus and inside > count_cores(cpus):
                return cpus, inside
        return None

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding for the first set of CPUs with too many ranks."""
        shared = self.shared(facts)
        if shared is None:
            return
        cpus, ranks = shared
        line = _with_room(facts, max(facts.thread_counts))
        yield self.finding(
            f"{ranks} ranks are bound to {count(count_cores(cpus), 'core')} "
            f"({_named(cpus)}); the node has {facts.node.cores}",
            f"ranks in turns on one core: {ranks / count_cores(cpus):.2g} times as long or more",
            Certainty.SEEN,
            where=_named(cpus),
            corrected_line=None if line is None else line.words,
            comparison=True,
        )


class SameCores(LaunchRule):
    """The threads of all ranks are pinned to the same cores."""

    code = "threads.same_cores"
    weight = Weight.OVER_TWICE
    summary = "OpenMP pins the threads of several ranks to the same cores"
    explanation = (
        "OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY and KMP_AFFINITY pin threads within the "
        "cores of their rank. If the launcher does not bind the ranks, each rank has all cores, "
        "and each pins its first thread to the first core: the threads of all ranks share a few "
        "cores. The masks of threads are read from /proc. The cure is to bind the ranks, so that "
        "each has cores of its own."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if pinned threads of two ranks have one core, and their ranks have more."""
        pinned = [rank for rank in facts.ranks if _is_pinned(rank)]
        cores = Counter(thread for rank in pinned for thread in set(rank.threads))
        if not cores:
            return
        thread, ranks = max(cores.items(), key=lambda pair: (pair[1], -min(pair[0])))
        if ranks < 2 or len(facts.ranks) > facts.usable_cores:
            return
        line = _with_room(facts, max(facts.thread_counts))
        yield self.finding(
            f"{ranks} ranks have pinned a thread to CPU {cpu_list(thread)}, though each may use "
            f"{len(pinned[0].cpus)} CPUs",
            f"{ranks} threads in turns on one core, while other cores are idle",
            facts.certainty,
            where=f"CPU {cpu_list(thread)}",
            corrected_line=None if line is None else line.words,
            comparison=True,
        )


def _is_pinned(rank: RankFacts) -> bool:
    """True if every thread of the rank has fewer CPUs than the rank, as OpenMP pins them."""
    return bool(rank.threads) and all(thread < rank.cpus for thread in rank.threads)


class OtherJobOnCores(LaunchRule):
    """Ranks are bound to cores to which another job is bound."""

    code = "cores.other_job"
    weight = Weight.OVER_TWICE
    summary = "another MPI job is bound to the same cores"
    explanation = (
        "Launchers know nothing of each other: each binds its ranks from core 0 on. Two jobs on a "
        "node then share the first cores while the others are idle. Other jobs are found in /proc "
        "with the masks of their ranks. The cure is to give each job cores of its own; autotune "
        "cluster split N divides a node."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding for the first other job that is bound to cores of these ranks."""
        node = facts.node.cpus
        own = frozenset().union(*(rank.cpus for rank in facts.ranks if rank.cpus < node))
        for job in facts.node.jobs:
            cpus = _bound_cpus(job, node)
            if common := cpus & own:
                yield self._of_job(facts, job, common, own)
                return

    def _of_job(
        self, facts: LaunchFacts, job: OtherJob, common: frozenset[int], own: frozenset[int]
    ) -> LaunchFinding:
        others = (_bound_cpus(one, facts.node.cpus) for one in facts.node.jobs)
        free = sorted(facts.node.cpus - with_siblings(frozenset().union(*others)))
        line = on_cpus(facts, frozenset(free[: len(own)])) if len(free) >= len(own) else None
        if line is None and count_cores(own) < facts.node.cores:
            line = unbound(facts)
        return self.finding(
            f"this launch and another job (pid {job.pid}, {job.command[:40]}) are both bound to "
            f"{_named(common)}",
            "two jobs in turns on the same cores: each takes twice as long or more",
            Certainty.SEEN,
            where=_named(common),
            corrected_line=None if line is None else line.words,
            advice="to give each job cores of its own:  autotune cluster split 2",
        )


def _named(cpus: frozenset[int]) -> str:
    """CPUs by their numbers: ``CPU 0``, ``CPUs 0-3``."""
    return f"{'CPU' if len(cpus) == 1 else 'CPUs'} {cpu_list(cpus)}"


def _bound_cpus(job: OtherJob, node: frozenset[int]) -> frozenset[int]:
    """The CPUs of the ranks of a job that are bound to a part of the node."""
    return frozenset().union(*(cpus for cpus in job.cpus if cpus and cpus < node))
