"""Start-up: what takes the time before the program begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from autotune.check.finding import Certainty, LaunchFinding, Weight
from autotune.check.launch_facts import LaunchFacts
from autotune.check.launch_line import LaunchLine
from autotune.check.parameter_requests import requests_in_force
from autotune.check.rule import LaunchRule
from autotune.check.transport_facts import Cause
from autotune.wording import seconds

_LEAST_S, _LEAST_SHARE = 0.5, 0.25
"""A cause counts if it takes this much, and this share of the start."""
_LONG_S = 2.0
"""A cause that takes this long counts even if the time of the program is not known."""


class SlowStart(LaunchRule):
    """A cause that takes a large part of the start."""

    cause: ClassVar[Cause]
    weight = Weight.TENTH

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if this cause takes half a second or more and a quarter of the start, and the
        start takes longer than the program."""
        start_up = facts.start_up
        if start_up is None:
            return
        cause_s = start_up.causes.get(self.cause, 0.0)
        if cause_s < max(_LEAST_S, _LEAST_SHARE * start_up.seconds) or self.is_cured(facts):
            return
        program = start_up.program_seconds
        if cause_s < _LONG_S if program is None else start_up.seconds < program:
            return
        line = self.cure(facts)
        longer = program is not None and cause_s > program
        yield self.finding(
            f"{self.what}: {seconds(cause_s)} of the {seconds(start_up.seconds)} of a start",
            f"every launch takes {seconds(cause_s)} longer"
            + (", longer than the program itself" if longer else ""),
            Certainty.SEEN,
            corrected_line=None if line is None else line.words,
            comparison=line is not None,
            advice=self.advice(facts),
        )

    what: ClassVar[str]

    def is_cured(self, facts: LaunchFacts) -> bool:
        """True if the line or its surroundings have the cure already."""
        return False

    def cure(self, facts: LaunchFacts) -> LaunchLine | None:
        """The line that avoids the cause; None if a line cannot."""
        raise NotImplementedError

    def advice(self, facts: LaunchFacts) -> str:
        """What to do beside the line."""
        return ""


class ScanOfPci(SlowStart):
    """hwloc looks at every PCI device in each process."""

    code = "start_up.pci"
    cause = "pci"
    what = "hwloc scans the PCI devices in every process"
    summary = "the start waits for a scan of the PCI devices"
    explanation = (
        "The launcher and every rank ask hwloc for the machine's topology, and hwloc looks at each "
        "PCI device. On some machines that takes seconds. HWLOC_COMPONENTS=-pci leaves the devices "
        "out; mapping by device (dist) then does not work. The start was measured with and "
        "without it."
    )

    def is_cured(self, facts: LaunchFacts) -> bool:
        """True if the variable is set."""
        return "HWLOC_COMPONENTS" in facts.rank_variables

    def cure(self, facts: LaunchFacts) -> LaunchLine | None:
        """The line with the variable, for the launcher too."""
        return facts.line.with_assignment("HWLOC_COMPONENTS", "-pci")


class NameResolution(SlowStart):
    """The host's own name is looked up in the network."""

    code = "start_up.resolver"
    cause = "resolver"
    what = "this host's own name is looked up in the network"
    summary = "the start waits for the name of this host"
    explanation = (
        "Launchers look the name of their own host up. If neither /etc/hosts nor a name server "
        "knows it, they wait until the resolver gives up. The look-up was timed. The cure for all "
        "programs is a line in /etc/hosts; MPICH's launcher takes -localhost ADDRESS."
    )

    def is_cured(self, facts: LaunchFacts) -> bool:
        """True if the launcher is told its address."""
        return facts.line.option("localhost") is not None

    def cure(self, facts: LaunchFacts) -> LaunchLine | None:
        """The line of MPICH with the address; other launchers have no such option."""
        library = facts.library
        if library is None or library.family != "mpich" or facts.line.is_srun:
            return None
        return facts.line.with_options("-localhost", "127.0.0.1")

    def advice(self, facts: LaunchFacts) -> str:
        """The line for /etc/hosts."""
        return f"for all programs: 127.0.1.1 {facts.node.host or 'HOST'} in /etc/hosts"


class OpeningOfLibfabric(SlowStart):
    """Open MPI opens libfabric, which carries nothing between ranks of a node."""

    code = "start_up.ofi"
    cause = "ofi"
    what = "Open MPI opens btl/ofi (libfabric), which carries nothing within a node"
    summary = "the start waits for libfabric, which one node does not need"
    explanation = (
        "Open MPI opens every transport that is installed. btl/ofi asks libfabric for all its "
        "providers, and within one node shared memory carries the messages. --mca btl ^ofi leaves "
        "it out. The start was measured with and without it."
    )

    def is_cured(self, facts: LaunchFacts) -> bool:
        """True if the selection of transports is given."""
        return "btl" in requests_in_force(facts) or not facts.hosts_here

    def cure(self, facts: LaunchFacts) -> LaunchLine | None:
        """The line without btl/ofi; exclusions of the site stay."""
        library = facts.library
        default = library.params["btl"].default if library and "btl" in library.params else ""
        excluded = default.removeprefix("^").split(",") if default else []
        value = "^" + ",".join([*excluded, "ofi"])
        if facts.line.is_srun:
            return facts.line.with_variable("OMPI_MCA_btl", value)
        return facts.line.with_options("--mca", "btl", value)
