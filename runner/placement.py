"""Reads mapping and binding back from the affinity of the ranks."""

from __future__ import annotations

import os
from pathlib import Path

from runner.cpus import cpu_list, cpus_of, with_siblings
from runner.types import ReadBack, ReadBackState

_SIBLINGS = Path("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")


def read_back_placement(
    placement: dict[str, str], bindings: list[str], partly: bool = False
) -> dict[str, ReadBack]:
    """State of each requested policy.

    Binding is judged by the width of each rank's CPU list. With ``PE=`` in the mapping, each rank
    must have that many cores. On one node, mapping and ranking order leave no trace beside the
    binding: they are ``not observable``.

    ``partly``: the bindings may lack CPUs of a rank, because its threads are bound to subsets.
    """
    states = {}
    for name, value in placement.items():
        if name == "bind_to":
            cores_each = _cores_each(placement.get("map_by", ""))
            states[name] = _binding(value, bindings, cores_each, partly)
        elif name == "cpu_bind":
            cpus_each = int(placement.get("cpus_per_task") or 1)
            states[name] = _cpu_bind(value, bindings, cpus_each)
        else:
            states[name] = ReadBack("not observable", value)
    return states


def read_back_cpus(cpus: frozenset[int], bindings: list[str], outside: bool) -> ReadBack:
    """The read-back of a binding to ``cpus``: in force if the run stayed on their cores.

    ``bindings`` are the ranks' CPU lists, empty if the ranks were not seen. ``outside``: the run
    used CPU time on other CPUs.
    """
    allowed_cpus = with_siblings(cpus)
    request = cpu_list(cpus)
    if not all(cpus_of(text) <= allowed_cpus for text in bindings):
        return ReadBack("altered", request, " | ".join(bindings), "affinity of the ranks")
    if outside:
        return ReadBack("altered", request, "CPU time on other CPUs", "CPU time of the run")
    if not bindings:
        return ReadBack("not observable", request)
    return ReadBack("in force", request, " | ".join(bindings), "affinity of the ranks")


def _cores_each(mapping: str) -> int | None:
    """The number of cores per rank requested by a mapping such as ``slot:PE=2``."""
    for word in mapping.upper().split(":")[1:]:
        name, _, count = word.partition("=")
        if name == "PE" and count.isdigit():
            return int(count)
    return None


def _binding(value: str, bindings: list[str], cores_each: int | None, partly: bool) -> ReadBack:
    if not bindings:
        return ReadBack("not observable", value)
    policy = value.partition(":")[0]
    widths = {len(cpus_of(text)) for text in bindings}
    binding_text = " | ".join(bindings)
    own_width = len(os.sched_getaffinity(0))
    state: ReadBackState
    widest = {"none": own_width, "core": (cores_each or 0) * threads_per_core()}
    target_width = widest.get(policy, 0)
    if partly and max(widths) < target_width:
        state = "not observable"
    elif policy == "none":
        state = "in force" if widths == {own_width} else "altered"
    elif policy == "hwthread":
        state = "in force" if widths == {1} else "altered"
    elif policy == "core" and cores_each is not None:
        state = "in force" if widths == {target_width} else "altered"
    elif policy == "core":
        state = "in force" if max(widths) <= threads_per_core() else "altered"
    else:
        state = "not observable"
    return ReadBack(state, value, binding_text, "affinity of the ranks")


def _cpu_bind(value: str, bindings: list[str], cpus_each: int) -> ReadBack:
    """The state of srun's ``--cpu-bind``, by the widths of the ranks' CPU lists."""
    widths = {len(cpus_of(text)) for text in bindings}
    policy = value.split(",")[-1]
    bound = {"threads": cpus_each, "rank": 1, "cores": max(cpus_each, threads_per_core())}
    if not widths or policy not in (*bound, "none", "no"):
        return ReadBack("not observable", value)
    most = bound.get(policy)
    # An unbound rank may use more CPUs than its share, except where that is all of its node.
    ok = max(widths) <= most if most is not None else min(widths) >= cpus_each
    state: ReadBackState = "in force" if ok else "altered"
    return ReadBack(state, value, " | ".join(bindings), "affinity of the ranks")


def threads_per_core() -> int:
    """Number of hardware threads of a core of this machine."""
    try:
        return max(1, len(cpus_of(_SIBLINGS.read_text(encoding="utf-8"))))
    except OSError:
        return 1
