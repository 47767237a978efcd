"""Transports: TCP in place of shared memory within a node, and providers that are slow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from autotune.check.finding import Certainty, LaunchFinding, Weight
from autotune.check.launch_facts import LaunchFacts
from autotune.check.launch_line import LaunchLine
from autotune.check.parameter_requests import RequestInForce, requests_in_force, without_request
from autotune.check.rule import LaunchRule

_SHARED = frozenset({"sm", "vader"})
_UCX_SHARED = frozenset(["all", "sm", "shm", "mm", "sysv", "posix", "xpmem", "knem", "cma"])
_NETWORK = "the network's protocol costs several times the latency of shared memory"
_SLOW_PROVIDERS = {"sockets": "tcp"}
"""Providers of libfabric that only stand for another one -> that one."""


@dataclass(frozen=True)
class _Reason:
    """Why no shared memory is used, the request that says so, and how sure this is."""

    words: str
    request: RequestInForce | None = None
    certainty: Certainty = Certainty.KNOWN


class TcpOnOneNode(LaunchRule):
    """Ranks of one node talk by TCP though they could share memory."""

    code = "transport.tcp"
    weight = Weight.OVER_TWICE
    summary = "messages within the node go by TCP instead of shared memory"
    explanation = (
        "Ranks of one node exchange messages through shared memory unless a parameter leaves it "
        "out: a list btl=tcp,self, UCX_TLS=tcp, I_MPI_FABRICS=ofi, MPIR_CVAR_NOLOCAL=1. Such lines "
        "are often made for several nodes and used on one. What carries the messages is read from "
        "the ranks, or follows from the parameters in force."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if all ranks are on one node and shared memory is left out or not used."""
        if not facts.on_one_node or (facts.rank_count or 1) < 2:
            return
        reason = _seen_tcp(facts) or _asked_tcp(facts)
        if reason is None:
            return
        line: LaunchLine | None = None
        advice = ""
        if reason.request is not None:
            line = without_request(facts, reason.request)
            advice = "" if line is not None else f"take it out of {reason.request.request.origin}"
        yield self.finding(
            f"{reason.words}, so all {facts.rank_count} ranks of this node talk by TCP",
            _NETWORK,
            reason.certainty,
            where="" if reason.request is None else reason.request.request.origin,
            corrected_line=None if line is None else line.words,
            comparison=line is not None,
            advice=advice,
        )


def _asked_tcp(facts: LaunchFacts) -> _Reason | None:
    """The parameter in force that leaves shared memory out."""
    values = requests_in_force(facts)
    family = "" if facts.library is None else facts.library.family
    if family == "openmpi" and _carrier(facts, values) == "ob1":
        return _without_sm(values)
    if family == "openmpi" and _carrier(facts, values) == "ucx":
        return _ucx_without_sm(values)
    if family == "mpich":
        local = values.get("MPIR_CVAR_NOLOCAL")
        # UCX has shared memory of its own.
        is_on = local is not None and local.value in ("1", "yes", "true", "on")
        if local is not None and is_on and facts.transport.device.endswith(":ofi"):
            return _Reason(
                f"MPIR_CVAR_NOLOCAL={local.value} turns shared memory off",
                local,
                Certainty.LIKELY,
            )
    fabric = values.get("I_MPI_FABRICS") if family == "impi" else None
    if fabric is not None and fabric.value == "ofi":
        return _Reason("I_MPI_FABRICS=ofi leaves shared memory out", fabric)
    return None


def _carrier(facts: LaunchFacts, values: dict[str, RequestInForce]) -> str:
    """The component of Open MPI that carries the messages; ob1 unless it is known otherwise."""
    asked = values.get("pml")
    chosen = "" if asked is None or asked.value.startswith("^") else asked.value
    return facts.transport.carrier or chosen or "ob1"


def _without_sm(values: dict[str, RequestInForce]) -> _Reason | None:
    btl = values.get("btl")
    if btl is None:
        return None
    names = set(btl.value.removeprefix("^").split(","))
    leaves_out = btl.value.startswith("^")
    if leaves_out != bool(names & _SHARED) or not (leaves_out or "tcp" in names):
        return None
    return _Reason(f"btl={btl.value} leaves shared memory out", btl)


def _ucx_without_sm(values: dict[str, RequestInForce]) -> _Reason | None:
    lanes = values.get("UCX_TLS")
    if lanes is None or lanes.value.startswith("^"):
        return None
    names = {name.strip("\\") for name in lanes.value.split(",")}
    if names & _UCX_SHARED or "tcp" not in names:
        return None
    return _Reason(f"UCX_TLS={lanes.value} leaves shared memory out", lanes)


def _seen_tcp(facts: LaunchFacts) -> _Reason | None:
    """What the ranks reported, with the parameter that leaves shared memory out."""
    lanes = facts.transport.lanes
    if not lanes or facts.transport.carrier == "cm":
        return None
    if not all(lane.partition("/")[0] in ("tcp", "sockets") for lane in lanes):
        return None
    if facts.transport.carrier.startswith("shm"):
        return None
    asked = _asked_tcp(facts)
    request = None if asked is None else asked.request
    words = f"the library uses {facts.transport.in_force}"
    return _Reason(words if asked is None else asked.words, request, Certainty.SEEN)


class SlowProvider(LaunchRule):
    """A provider of libfabric that only imitates another one."""

    code = "transport.provider"
    weight = Weight.TENTH
    summary = "libfabric's provider sockets, which tcp replaced"
    explanation = (
        "The provider sockets was made to develop with: it imitates a network by a thread for each "
        "rank. libfabric's tcp uses the same network without that thread, and newer versions of "
        "libfabric no longer have sockets."
    )

    def examine(self, facts: LaunchFacts) -> Iterator[LaunchFinding]:
        """A finding if a variable asks for such a provider, or the ranks use it."""
        values = requests_in_force(facts)
        for name in ("FI_PROVIDER", "I_MPI_OFI_PROVIDER"):
            asked = values.get(name)
            if asked is None or asked.value not in _SLOW_PROVIDERS:
                continue
            better = _SLOW_PROVIDERS[asked.value]
            is_seen = asked.value in facts.transport.lanes
            yield self.finding(
                f"{name}={asked.value}: libfabric imitates the network by a thread of each rank",
                f"{better} sends over the same network without that thread",
                Certainty.SEEN if is_seen else Certainty.KNOWN,
                where=asked.request.origin,
                corrected_line=facts.line.with_variable(name, better).words,
                comparison=True,
            )
