"""The transport in force in a run of Open MPI, and the parameters without effect under it.

One component of the framework ``pml`` carries all messages. ``pml/ob1`` uses the framework ``btl``,
``pml/cm`` the framework ``mtl`` (libfabric), ``pml/ucx`` UCX. Components that were not chosen are
closed, so a run's registered parameters show the one in force. The parameters of ``btl`` are always
registered, though only ``pml/ob1`` sends messages by it.

Between two ranks ``pml/ob1`` uses only the transports (BTL) with the greatest exclusivity. Shared
memory has 65536 and TCP 100, so TCP carries nothing between ranks of one node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from runner.mpi.openmpi.ucx import UCX, UcxLog
from runner.types import ReadBack

RunValues = Mapping[str, tuple[str, str]]
"""Name -> (value, source), as read after a run."""

_EXCLUSIVITY = "btl_{}_exclusivity"
_SHARED_MEMORY = ("sm", "vader")
_COMPONENT = re.compile(r"btl_([a-z0-9]+)_\w+")
_FLAGS = re.compile(r"btl_(sm|vader)_flags")
_COMMON = re.compile(r"(?:opal|ompi)_common_[a-z0-9]+_")


OB1, CM, UCX_CARRIER = "ob1", "cm", "ucx"
PMLS = (OB1, UCX_CARRIER, CM)
_UNDER = {
    OB1: re.compile(r"(pml_ob1|btl|bml|smsc)(_\w+)?|opal_common_sm_\w+|mpi_event_tick_rate"),
    CM: re.compile(r"(pml_cm|mtl)(_\w+)?"),
    UCX_CARRIER: re.compile(rf"(pml_ucx|opal_common_ucx)_\w+|{UCX}\w+"),
}
"""Names of the parameters and variables that act only if this component carries the messages."""
_LIBFABRIC = re.compile(r"(opal_common_ofi|FI)_\w+")
"""Names for libfabric, which ``mtl/ofi`` and ``btl/ofi`` use."""


def carrier(run_values: RunValues) -> str:
    """The component of ``pml`` that carries the messages: ob1, ucx or cm; "" if none is seen."""
    # A run has 500 names and is asked several times: a search in one text is the fastest.
    names = "\n".join(["", *run_values])
    return next((p for p in PMLS if f"\npml_{p}_" in names), "")


def transport_of(
    run_values: RunValues, log: UcxLog | None = None, one_node: bool = False
) -> ReadBack:
    """The transport in force, such as ``ob1: sm`` or ``ucx: sysv/memory, cma/memory``.

    ``one_node``: all ranks are on one node, where ``pml/ob1`` uses only shared memory.
    """
    pml = carrier(run_values)
    if not pml:
        return ReadBack("not observable", "")
    if pml == OB1:
        parts = [n for n in (*_SHARED_MEMORY, "ofi", "tcp") if _exclusivity(n, run_values)]
        parts = [n for n in parts if n != "vader" or "sm" not in parts]
        parts = parts[:1] if one_node else parts
    elif pml == CM:
        parts = ["ofi"] if any(n.startswith("mtl_ofi_") for n in run_values) else []
    else:
        lanes = log.lanes if log is not None else {}
        parts = list(dict.fromkeys(lane for names in lanes.values() for lane in names))
    words = f"{pml}: {', '.join(parts)}" if parts else pml
    return ReadBack("in force", "", words, "parameters that the run registered")


def idle_under(names: Iterable[str], transport: str) -> dict[str, str]:
    """The parameters in ``names`` that have no effect under a transport, each with the reason.

    ``transport`` is the text of :func:`transport_of`; if it is empty (unknown), so is the result.
    """
    pml = transport.partition(":")[0]
    if pml not in _UNDER:
        return {}
    why = f"pml/{pml} carries the messages"
    others = [pattern for other, pattern in _UNDER.items() if other != pml]
    others += [] if "ofi" in transport else [_LIBFABRIC]
    return {n: why for n in names if any(pattern.fullmatch(n) for pattern in others)}


def lacks_component(name: str, run_values: RunValues) -> bool:
    """True if ``name`` belongs to code shared by components, none of which was opened.

    The library lists such parameters (``opal_common_ucx_tls``) only while a component uses the
    code.
    """
    part = _COMMON.match(name)
    return part is not None and not any(other.startswith(part[0]) for other in run_values)


def same_transfers(name: str, request: str, effective: str) -> bool:
    """True if two values of ``btl_*_flags`` differ only in put and get.

    A component adds these if it has single copy, and removes them otherwise.
    """
    if not _FLAGS.fullmatch(name):
        return False
    first, second = ({*text.split(",")} - {"put", "get"} for text in (request, effective))
    return first == second


def deselection_reason(
    name: str, run_values: RunValues, selections_at_listing: Mapping[str, str]
) -> str:
    """Why the selection in force does not open the component of ``name``; "" if it may.

    ``selections_at_listing`` are the selections in force when the library listed its parameters. A
    selection such as ``pml=^ucx`` excludes components, whose parameters the list then lacks.
    """
    framework = name.partition("_")[0]
    value = run_values.get(framework, ("", ""))[0]
    for selection in filter(None, (value, selections_at_listing.get(framework, ""))):
        if not selection.startswith("^"):
            continue
        for component in selection[1:].split(","):
            mine = component and name.startswith(f"{framework}_{component}_")
            if mine and not _selects(value, component):
                return f"{framework}={value} excludes its component {component}"
    return ""


def _selects(selection: str, component: str) -> bool:
    """True if a framework's selection (``a,b``, ``^a,b``; "" for all) includes the component."""
    is_listed = component in selection.removeprefix("^").split(",")
    return not is_listed if selection.startswith("^") else is_listed or not selection


def without_traffic(
    read_back: Mapping[str, ReadBack], run_values: RunValues, one_node: bool
) -> dict[str, ReadBack]:
    """Parameters of transports that carry no messages in this run, as ``inactive``.

    ``one_node``: all ranks are on one node.
    """
    pml = carrier(run_values)
    active = {name: back for name, back in read_back.items() if back.state == "in force"}
    states = {
        name: ReadBack("inactive", active[name].requested, active[name].effective, why)
        for name, why in idle_under(active, transport_of(run_values).effective or "").items()
    }
    return states | (
        _not_within_node(read_back, run_values) if one_node and pml in (OB1, "") else {}
    )


def _not_within_node(
    read_back: Mapping[str, ReadBack], run_values: RunValues
) -> dict[str, ReadBack]:
    """Parameters of transports that carry nothing between ranks of one node."""
    present = [n for n in _SHARED_MEMORY if _exclusivity(n, run_values) is not None]
    if not present:
        return {}
    first = max(present, key=lambda n: _exclusivity(n, run_values) or 0)
    states = {}
    for name, back in read_back.items():
        match = _COMPONENT.fullmatch(name)
        if (
            back.state != "in force"
            or match is None
            or match[1] in (*_SHARED_MEMORY, "self", "base")
        ):
            continue
        own = _exclusivity(match[1], run_values)
        if own is not None and own < (_exclusivity(first, run_values) or 0):
            why = f"btl/{match[1]} carries no messages within one node; btl/{first} does"
            states[name] = ReadBack("inactive", back.requested, back.effective, why)
    return states


def _exclusivity(component: str, run_values: RunValues) -> int | None:
    """The exclusivity of an opened transport; None if it was not opened."""
    value = run_values.get(_EXCLUSIVITY.format(component), ("", ""))[0]
    return int(value) if re.fullmatch("[0-9]{1,12}", value) else None
