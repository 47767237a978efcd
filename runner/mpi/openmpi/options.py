"""Options of Open MPI's launchers: placement, variables, the map of ranks; what given ones mean."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from runner.mpi.openmpi.parameters import ENV_PREFIXES
from runner.scheduler import allocation
from runner.types import LIBRARY, LaunchSpec

VARIABLE_LIST, LIST_SIGN = "mca_base_env_list", ";"
"""The parameter with variables for all ranks, and their separator."""
_YIELD = "mpi_yield_when_idle"
_WIDE = ("l1cache", "l2cache", "l3cache", "numa", "package", "socket")
_MAPPING = ("--map-by", "-map-by")
_BIND_TO = ("--bind-to", "-bind-to")
_BINDING = (*_BIND_TO, *_MAPPING, "--cpus-per-proc")
_OVERSUBSCRIBE = ":OVERSUBSCRIBE"
"""PRRTE allows more ranks than cores by a modifier of the mapping."""


def unbound(spec: LaunchSpec, prrte: bool) -> tuple[str, ...]:
    """Options that unbind a launch on some cores if the launcher's own binding would leave them."""
    has_binding = "bind_to" in spec.placement or any(w in _BIND_TO for w in spec.launch_options)
    if has_binding or (prrte and spec.oversubscribe):
        return ()
    mapping = spec.placement.get("map_by", "").partition(":")[0]
    if mapping in _WIDE or (mapping and not prrte):
        return ("--bind-to", "none")
    # 5.0 maps more than two ranks by core or by NUMA node, depending on the machine.
    return ("--bind-to", "core") if prrte and not mapping and spec.ranks > 2 else ()


def values_of(options: tuple[str, ...]) -> dict[str, str]:
    """The MCA parameters among the fixed launch options."""
    return {
        options[i + 1]: options[i + 2]
        for i, word in enumerate(options[:-2])
        if word in ("--mca", "-mca", "--gmca", "-gmca", "--omca")
    }


def mapping_and_binding(spec: LaunchSpec, prrte: bool, spread: bool) -> list[str]:
    """The fixed launch options, and those that map, order and bind the ranks.

    PRRTE refuses a second ``--map-by``: if the fixed options have one, that one allows more ranks
    than cores. ``spread``: the ranks of an oversubscribed launch without a policy go to all nodes
    by slot, as 4.1 does; PRRTE puts them on the first.
    """
    options, placement = list(spec.launch_options), spec.placement
    places = [i + 1 for i, word in enumerate(options[:-1]) if word in _MAPPING]
    if not prrte or not spec.oversubscribe or (places and "map_by" in placement):
        return [*options, *placement_options(placement, spec.oversubscribe, prrte)]
    if not places:
        placement = {"map_by": "slot"} | placement if spread else placement
        return [*options, *placement_options(placement, True, prrte)]
    for place in places:
        options[place] = _shared_slots(options[place])
    return [*options, *_order_and_binding(placement, True)]


def placement_options(placement: Mapping[str, str], oversubscribe: bool, prrte: bool) -> list[str]:
    """The options that map, order and bind the ranks of a launch."""
    options: list[str] = []
    map_by = placement.get("map_by")
    if prrte:
        if oversubscribe:
            map_by = _shared_slots(map_by or "")
        if map_by:
            options += ["--map-by", map_by]
    else:
        if oversubscribe:
            options.append("--oversubscribe")
        if map_by:
            options += ["--map-by", map_by]
    return [*options, *_order_and_binding(placement, oversubscribe)]


def _shared_slots(mapping: str) -> str:
    """The mapping with PRRTE's modifier for more ranks than cores."""
    return mapping if "oversubscribe" in mapping.lower() else mapping + _OVERSUBSCRIBE


def _order_and_binding(placement: Mapping[str, str], oversubscribe: bool) -> list[str]:
    options: list[str] = []
    if "rank_by" in placement:
        options += ["--rank-by", placement["rank_by"]]
    if "bind_to" in placement:
        bind = placement["bind_to"]
        # Without the modifier the launcher refuses to bind two ranks to one core.
        may_overload = bind == "none" or "overload-allowed" in bind
        overload = ":overload-allowed" if oversubscribe and not may_overload else ""
        options += ["--bind-to", bind + overload]
    return options


def shared_cores(
    placement: Mapping[str, str], workers: int, launch_options: Sequence[str], oversubscribe: bool
) -> dict[str, str]:
    """The placement with a binding that gives each rank as many cores as it has workers.

    Open MPI binds a small number of processes to one core each. A process with several workers
    needs ``PE=`` with ``--bind-to core``; no other pair of options works together in 4.1 and
    5.0. If the setting asks for a wider binding or none, the placement stays. With more ranks
    than cores 5.0 cannot share out cores, so nothing is bound.
    """
    own = dict(placement)
    is_set = any(option in _BINDING for option in launch_options)
    is_set = is_set or "PE=" in own.get("map_by", "").upper()
    if workers == 1 or is_set or own.get("bind_to", "core") != "core":
        return own
    if oversubscribe:
        return own | {"bind_to": "none"}
    return own | {"map_by": f"{own.get('map_by', 'slot')}:PE={workers}", "bind_to": "core"}


def map_options(spec: LaunchSpec, prrte: bool, names_hosts: bool) -> list[str]:
    """Options with which the launcher prints the map of the ranks and launches nothing."""
    if prrte:
        return ["--display", "map", "--do-not-launch"]
    # Else ORTE would learn the number of slots only from the daemon that it launches.
    has_slots = spec.oversubscribe or names_hosts or allocation(os.environ).nodes
    hosts = [] if has_slots else ["--host", f"localhost:{spec.ranks}"]
    return ["--display-devel-map", *hosts, "--do-not-launch"]


def yield_options(spec: LaunchSpec) -> tuple[str, ...]:
    """Options that make the ranks of an oversubscribed launch on named hosts yield.

    Both generations do so by themselves only on the launcher's own node: the daemons of other
    nodes do not pass it on to their ranks (seen with 5.0.11 and 4.1.8; an allreduce of 1 KiB
    took 12 ms instead of 1.1). If the spec names the parameter itself, no option is added: 4.1
    joins the values of a parameter that is given twice.
    """
    variable = f"{ENV_PREFIXES[0]}{_YIELD}"
    is_set = _YIELD in spec.of(LIBRARY) or _YIELD in spec.launch_options
    is_set = is_set or variable in spec.env or variable in os.environ
    return () if is_set else ("--mca", _YIELD, "1")


def joined_variables(variables: Mapping[str, str]) -> str:
    """Variables as the value of :data:`VARIABLE_LIST`; "" if a value has its separator."""
    if any(LIST_SIGN in value for value in variables.values()):
        return ""
    return LIST_SIGN.join(f"{name}={value}" for name, value in variables.items())


def export_options(variables: Mapping[str, str], site_list: Sequence[str]) -> list[str]:
    """Options that give the variables to all ranks.

    ``site_list`` are those that the site's file has in its list. 4.1 refuses to start with both, so
    the list on the command line has the site's, too.
    """
    joined = joined_variables(variables)
    if not joined or not site_list:
        return [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]
    others = [entry for entry in site_list if entry.partition("=")[0] not in variables]
    return ["--mca", VARIABLE_LIST, LIST_SIGN.join([*others, joined])]
