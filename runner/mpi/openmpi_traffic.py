"""Inactive parameters of Open MPI: those that do nothing in a run though the library knows them.

Between two ranks Open MPI uses only the transports (BTL) with the greatest exclusivity. Shared
memory has 65536 and TCP 100, so TCP carries nothing between ranks of one node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from runner.types import ReadBack

Shown = Mapping[str, tuple[str, str]]
"""Name -> (value, source), as read after a run."""

_EXCLUSIVITY = "btl_{}_exclusivity"
_SHARED_MEMORY = ("sm", "vader")
_COMPONENT = re.compile(r"btl_([a-z0-9]+)_\w+")
_COMMON = re.compile(r"(?:opal|ompi)_common_[a-z0-9]+_")


def not_registered(name: str, shown: Shown) -> bool:
    """Whether ``name`` belongs to a part shared by components, none of which was opened.

    The library lists such parameters (``opal_common_ucx_tls``) only while a component uses the
    part.
    """
    part = _COMMON.match(name)
    return part is not None and not any(other.startswith(part[0]) for other in shown)


def deselected(name: str, shown: Shown, listed: Mapping[str, str]) -> str:
    """Why the selection in force does not open the component of ``name``; "" if it may.

    A selection that leaves components out names them (``pml=^ucx``). ``listed`` are the selections
    that were in force when the library listed its parameters; the list lacks the parameters of
    components that these leave out.
    """
    framework = name.partition("_")[0]
    value = shown.get(framework, ("", ""))[0]
    for selection in filter(None, (value, listed.get(framework, ""))):
        if not selection.startswith("^"):
            continue
        for component in selection[1:].split(","):
            mine = component and name.startswith(f"{framework}_{component}_")
            if mine and not _selects(value, component):
                return f"{framework}={value} excludes its component {component}"
    return ""


def _selects(selection: str, component: str) -> bool:
    """Whether a framework's selection (``a,b``, ``^a,b``; "" for all) has the component."""
    named = component in selection.removeprefix("^").split(",")
    return not named if selection.startswith("^") else named or not selection


def without_traffic(read_back: Mapping[str, ReadBack], shown: Shown) -> dict[str, ReadBack]:
    """Parameters of transports that carry nothing between ranks of one node, as ``inactive``."""
    shared = [n for n in _SHARED_MEMORY if _exclusivity(n, shown) is not None]
    if not shared:
        return {}
    first = max(shared, key=lambda n: _exclusivity(n, shown) or 0)
    found = {}
    for name, back in read_back.items():
        match = _COMPONENT.fullmatch(name)
        if (
            back.state != "in force"
            or match is None
            or match[1] in (*_SHARED_MEMORY, "self", "base")
        ):
            continue
        own = _exclusivity(match[1], shown)
        if own is not None and own < (_exclusivity(first, shown) or 0):
            why = f"btl/{match[1]} carries no messages within one node; btl/{first} does"
            found[name] = ReadBack("inactive", back.requested, back.effective, why)
    return found


def _exclusivity(component: str, shown: Shown) -> int | None:
    """The exclusivity of a transport that was opened; None if it was not opened."""
    value = shown.get(_EXCLUSIVITY.format(component), ("", ""))[0]
    return int(value) if re.fullmatch("[0-9]{1,12}", value) else None
