"""Memory: huge pages, and the kernel's moving of pages between memory nodes."""

from __future__ import annotations

from collections.abc import Iterator

from autotune.check.finding import Certainty, LaunchFinding, Weight
from autotune.check.launch_facts import LaunchFacts
from autotune.check.rule import LaunchRule

_LARGE = 1 << 30
"""Bytes of a rank from which on the size of pages matters."""
_TUNABLES = "GLIBC_TUNABLES"
_HUGE = "glibc.malloc.hugetlb=1"


class HugePages(LaunchRule):
    """Large arrays lie on small pages."""

    code = "memory.huge_pages"
    weight = Weight.SLIGHT
    summary = "ranks with large arrays have no huge pages"
    explanation = (
        "If transparent huge pages are set to madvise, only memory for which a program asks has "
        "them. Programs with arrays of gigabytes then spend a few percent of their time on the "
        "tables of small pages. malloc of glibc 2.35 and later asks for them with "
        "GLIBC_TUNABLES=glibc.malloc.hugetlb=1. The memory of each rank is read from /proc."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if ranks are large, huge pages are to be asked for, and none are in use."""
        sizes = [(rank.resident_bytes or 0, rank.huge_bytes) for rank in facts.ranks]
        small = [size for size, huge in sizes if size >= _LARGE and huge is not None]
        used = sum(huge or 0 for _, huge in sizes)
        if facts.node.huge_pages != "madvise" or not small or used * 10 > sum(small):
            return
        tunables = facts.rank_variables.get(_TUNABLES, "")
        if "hugetlb" in tunables:
            return
        value = f"{tunables}:{_HUGE}" if tunables else _HUGE
        yield self.finding(
            f"a rank has {max(small) / _LARGE:.1f} GiB on small pages; huge pages are to be asked "
            "for (madvise)",
            "a few percent of the time goes into tables of pages",
            Certainty.LIKELY,
            where="/sys/kernel/mm/transparent_hugepage/enabled",
            corrected_line=facts.line.with_variable(_TUNABLES, value).words,
            comparison=True,
        )


class NumaBalancing(LaunchRule):
    """The kernel looks for pages to move though ranks are bound."""

    code = "memory.numa_balancing"
    weight = Weight.SLIGHT
    summary = "the kernel samples the pages of ranks that are bound to one memory node"
    explanation = (
        "With kernel.numa_balancing the kernel takes pages away from time to time to see who uses "
        "them. Ranks that are bound to cores of one memory node have their pages there already, "
        "and only pay for it. It is a setting of the machine: sysctl kernel.numa_balancing=0."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding on a machine with several memory nodes whose ranks are bound and large."""
        node = facts.node
        is_bound = bool(facts.ranks) and all(
            len(rank.cpus) * node.numa_nodes <= len(node.online_cpus) for rank in facts.ranks
        )
        large = any((rank.resident_bytes or 0) >= _LARGE for rank in facts.ranks)
        if not (node.numa_balancing and node.numa_nodes > 1 and is_bound and large):
            return
        yield self.finding(
            f"kernel.numa_balancing is on, and the ranks are bound on {node.numa_nodes} memory "
            "nodes",
            "the kernel takes pages away to see who uses them",
            Certainty.LIKELY,
            where="/proc/sys/kernel/numa_balancing",
            advice="on machines for MPI alone:  sysctl kernel.numa_balancing=0",
        )
