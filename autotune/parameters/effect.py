"""Whether a parameter can act in a launch: its component, the transport, a missing switch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from autotune.parameters.catalogue import Catalogue, KnownParameter
from runner.mpi.discover import families
from runner.types import LIBRARY

RULES_SWITCH = "coll_tuned_use_dynamic_rules"
_FORCED = re.compile(r"coll_tuned_[a-z_]+_algorithm(_\w+)?|coll_tuned_dynamic_rules_filename")
_TRUE = frozenset({"1", "true", "t", "yes", "y", "enabled"})
_SELECTED = frozenset({"pml", "btl", "mtl", "coll", "osc", "smsc", "io", "sharedfp", "fcoll"})
"""Frameworks whose selection decides which of their components are opened."""
_ALIASES = {"vader": "sm", "sm": "vader"}
_CHOOSES = re.compile(r"coll_[a-z]+_(priority|enable)")
_INTEL_FABRICS = "I_MPI_FABRICS"


@dataclass(frozen=True)
class Idle:
    """Why a parameter cannot act; ``needs`` is the assignment (name, value, layer) with which it
    would."""

    reason: str
    needs: tuple[str, str, str] | None = None
    is_certain: bool = True


def idle_reason(
    parameter: KnownParameter,
    in_force: Mapping[str, str],
    catalogue: Catalogue,
    transport: str = "",
    inactive: Mapping[str, str] | None = None,
) -> Idle | None:
    """Why a parameter has no effect with the other values in force; None if it may have one.

    ``transport`` is the one in force as the library reports it; "" if it is not known.
    ``inactive`` maps parameters that ranks reported as inactive to the reason.
    """
    name = parameter.name
    if parameter.is_closed and parameter.info is not None:
        component = f"{parameter.info.framework}/{parameter.info.component}"
        return Idle(f"its component {component} cannot be opened on this machine")
    if _FORCED.fullmatch(name):
        switch = in_force.get(RULES_SWITCH, "")
        if switch.lower() not in _TRUE and catalogue.find(RULES_SWITCH) is not None:
            return Idle(f"coll/tuned follows it only with {RULES_SWITCH}=1",
                        (RULES_SWITCH, "1", LIBRARY))  # fmt: skip
    if why := _deselected(parameter, in_force, catalogue):
        return Idle(why)
    kind = families().get(catalogue.family)
    chosen = transport or _chosen_transport(in_force, catalogue.family)
    if kind is not None and chosen and (why := kind.idle_under([name], chosen).get(name, "")):
        return Idle(why)
    if why := _not_carrying(parameter, chosen):
        return Idle(why)
    if why := (inactive or {}).get(name, ""):
        return Idle(why)
    if why := catalogue.outranked.get(name, ""):
        component = name.split("_")[1]
        is_chosen = any(_CHOOSES.fullmatch(n) and n.split("_")[1] == component for n in in_force)
        return None if is_chosen else Idle(why)
    return None


def _not_carrying(parameter: KnownParameter, transport: str) -> str:
    """Why a component of ``btl`` has no messages under a transport such as ``ob1: sm``."""
    carrier, _, listed = transport.partition(": ")
    info = parameter.info
    if carrier != "ob1" or not listed or info is None or info.framework != "btl":
        return ""
    names = {name for name in re.split(r"[,\s]+", listed) if name}
    component = info.component
    if component in ("", "base", "self") or {component, _ALIASES.get(component, "")} & names:
        return ""
    return f"{listed} carries the messages here, and btl/{component} none"


def _chosen_transport(in_force: Mapping[str, str], family: str) -> str:
    """The transport that a setting certainly chooses; "" if the library chooses."""
    if family == "openmpi":
        pml = in_force.get("pml", "")
        return pml if pml in ("ob1", "ucx", "cm") else ""
    return "shm" if family == "impi" and in_force.get(_INTEL_FABRICS) == "shm" else ""


def _deselected(
    parameter: KnownParameter, in_force: Mapping[str, str], catalogue: Catalogue
) -> str:
    """Why the selection of its framework does not open the component; "" if it may be opened."""
    info = parameter.info
    if info is None or info.framework not in _SELECTED or info.component in ("", "base"):
        return ""
    framework = catalogue.find(info.framework, LIBRARY)
    listed = framework.info.default if framework is not None and framework.info else ""
    selection = in_force.get(info.framework, listed)
    if not selection or parameter.name == info.framework:
        return ""
    names = selection.removeprefix("^").split(",")
    component = info.component
    is_named = component in names or _ALIASES.get(component, "") in names
    if selection.startswith("^") == is_named:
        return f"{info.framework}={selection} does not open its component {component}"
    return ""
