"""Single copy: whether the kernel copies long messages from one rank to another (CMA)."""

from __future__ import annotations

from collections.abc import Iterator

from autotune.check.finding import Certainty, LaunchFinding, Weight
from autotune.check.launch_facts import LaunchFacts
from autotune.check.launch_line import LaunchLine
from autotune.check.parameter_requests import requests_in_force
from autotune.check.rule import LaunchRule
from runner.single_copy import SYS_PTRACE

_FILTERED = ("docker", "podman", "container", "lxc", "kubernetes", "containerd")
"""Kinds of containers whose usual filter of system calls may forbid the copy."""
_NO_COPY = {
    "btl_vader_single_copy_mechanism": "none",
    "smsc": "^cma",
    "MPIR_CVAR_CH4_CMA_ENABLE": "0",
    "I_MPI_SHM_CMA": "0",
}
"""The parameter of each library that turns the copy by the kernel off, and its value."""


class ForbiddenCopy(LaunchRule):
    """The kernel does not let ranks read each other's memory, and the library tries to."""

    code = "single_copy.forbidden"
    weight = Weight.OVER_TWICE
    summary = "ranks may not copy from each other by the kernel, and the library tries it"
    explanation = (
        "Long messages within a node are copied once, by the system call process_vm_readv (CMA). "
        "A container's filter of system calls, yama (ptrace_scope) or a missing capability may "
        "forbid it; the library then prints errors, or copies twice. autotune tries the call "
        "between two processes of its own. The cure is to allow it (docker run "
        "--cap-add SYS_PTRACE), or to tell the library not to try."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if the copy was tried in vain, or is probably forbidden in this container."""
        node = facts.node
        if (facts.rank_count or 1) < 2 or not facts.hosts_here or _is_off(facts):
            return
        if node.kernel_copy is True or any(_may_trace(facts)):
            return
        if node.kernel_copy is None and not (node.container in _FILTERED and node.ptrace_scope):
            return
        line = _without_copy(facts)
        if line is None:
            return
        sure = node.kernel_copy is False
        where = f"the container ({node.container})" if node.container else "the kernel"
        asked = _is_asked(facts)
        yield self.finding(
            f"{where} {'forbids' if sure else 'probably forbids'} ranks to copy from each other's "
            f"memory (process_vm_readv){', and the line asks for it' if asked else ''}",
            "an error for each long message, or one more copy of it",
            Certainty.SEEN if sure else Certainty.LIKELY,
            where="" if node.ptrace_scope is None else f"ptrace_scope {node.ptrace_scope}",
            corrected_line=line.words,
            advice="or allow it: docker run --cap-add SYS_PTRACE" if node.container else "",
        )


class NamespacesApart(LaunchRule):
    """Ranks in user name spaces of their own cannot copy from each other."""

    code = "single_copy.namespaces"
    weight = Weight.OVER_TWICE
    summary = "each rank is in a user name space of its own, and UCX copies by the kernel"
    explanation = (
        "A container that is started for each rank (mpirun -n 4 apptainer exec image.sif ./a.out) "
        "may give every rank a user name space of its own. The kernel then refuses to copy between "
        "them. Open MPI's own shared memory notices that; UCX does not, and fails with 'Operation "
        "not permitted'. UCX_TLS=^cma leaves the copy out. One container for all ranks of the node "
        "keeps it."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if two ranks of this node were seen in different user name spaces."""
        spaces = {rank.namespaces["user"] for rank in facts.ranks if "user" in rank.namespaces}
        if len(spaces) < 2 or facts.transport.carrier not in ("", "ucx"):
            return
        lanes = requests_in_force(facts).get("UCX_TLS")
        value = "" if lanes is None else lanes.value
        if "cma" in value if value.startswith("^") else value and not _includes_cma(value):
            return
        right = f"{value},cma" if value.startswith("^") else "^cma"
        yield self.finding(
            f"the ranks are in {len(spaces)} user name spaces, between which the kernel does not "
            "copy",
            "UCX ends with an error at the first long message",
            Certainty.SEEN if facts.transport.carrier else Certainty.LIKELY,
            corrected_line=facts.line.with_variable("UCX_TLS", right).words,
            advice="or start one container for all ranks of the node",
        )


def _includes_cma(lanes: str) -> bool:
    return bool({"all", "sm", "shm", "cma"} & set(lanes.split(",")))


def _may_trace(facts: LaunchFacts) -> Iterator[bool]:
    """Whether each rank whose capabilities were seen may read every process."""
    for rank in facts.ranks:
        if rank.capabilities is not None and facts.node.kernel_copy is None:
            yield bool(rank.capabilities & SYS_PTRACE)


def _is_off(facts: LaunchFacts) -> bool:
    """Whether a parameter in force turns the copy off, or names another way."""
    values = requests_in_force(facts)
    off = (values[name].value for name in _NO_COPY if name in values)
    return any(v in ("none", "emulated", "0", "no", "off") or v.startswith("^cma") for v in off)


def _is_asked(facts: LaunchFacts) -> bool:
    values = requests_in_force(facts)
    return any(values[name].value in ("cma", "1") for name in _NO_COPY if name in values)


def _without_copy(facts: LaunchFacts) -> LaunchLine | None:
    """The line that tells the library not to try; None if nothing is known for it."""
    library, line = facts.library, facts.line
    if library is None:
        return None
    match library.family:
        case "openmpi":
            old = library.version_tuple < (5,)
            name = "btl_vader_single_copy_mechanism" if old else "smsc"
            set_by = requests_in_force(facts).get(name)
            if set_by is not None and set_by.option is not None:
                first = set_by.option.words[0]
                return line.with_replaced(set_by.option, first, name, _NO_COPY[name])
            if line.is_srun:
                return line.with_variable(f"OMPI_MCA_{name}", _NO_COPY[name])
            return line.with_options("--mca", name, _NO_COPY[name])
        case "mpich":
            return line.with_variable("MPIR_CVAR_CH4_CMA_ENABLE", "0")
        case "impi":
            return line.with_variable("I_MPI_SHM_CMA", "0")
    return None
