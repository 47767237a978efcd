"""Reads mapping and binding back from the affinity of the ranks."""

from __future__ import annotations

import os
from pathlib import Path

from runner.cpus import cpu_list, cpus_of, with_siblings
from runner.types import ReadBack, ReadBackState

_SIBLINGS = Path("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")


def read_back_placement(placement: dict[str, str], bindings: list[str]) -> dict[str, ReadBack]:
    """State of each requested policy.

    Binding is judged by the width of each rank's CPU list. With ``PE=`` in the mapping, each rank
    must have that many cores. On one node, mapping and ranking order leave no trace beside the
    binding: they are ``not observable``.
    """
    states = {}
    for name, value in placement.items():
        if name == "bind_to":
            states[name] = _binding(value, bindings, _cores_each(placement.get("map_by", "")))
        else:
            states[name] = ReadBack("not observable", value)
    return states


def read_back_cpus(cpus: frozenset[int], bindings: list[str], outside: bool) -> ReadBack:
    """Whether a run that was bound to ``cpus`` stayed on their cores.

    ``bindings`` are the ranks' CPU lists, empty if the ranks were not seen. ``outside``: the run
    used CPU time on other CPUs.
    """
    allowed = with_siblings(cpus)
    asked = cpu_list(cpus)
    if not all(cpus_of(text) <= allowed for text in bindings):
        return ReadBack("altered", asked, " | ".join(bindings), "affinity of the ranks")
    if outside:
        return ReadBack("altered", asked, "CPU time on other CPUs", "CPU time of the run")
    if not bindings:
        return ReadBack("not observable", asked)
    return ReadBack("in force", asked, " | ".join(bindings), "affinity of the ranks")


def _cores_each(mapping: str) -> int | None:
    """The number of cores per rank that a mapping such as ``slot:PE=2`` asks for."""
    for word in mapping.upper().split(":")[1:]:
        name, _, count = word.partition("=")
        if name == "PE" and count.isdigit():
            return int(count)
    return None


def _binding(policy: str, bindings: list[str], cores_each: int | None) -> ReadBack:
    if not bindings:
        return ReadBack("not observable", policy)
    widths = {len(cpus_of(text)) for text in bindings}
    shown = " | ".join(bindings)
    here = len(os.sched_getaffinity(0))
    state: ReadBackState
    if policy == "none":
        state = "in force" if widths == {here} else "altered"
    elif policy == "hwthread":
        state = "in force" if widths == {1} else "altered"
    elif policy == "core" and cores_each is not None:
        wanted = cores_each * _threads_per_core()
        state = "in force" if widths == {wanted} else "altered"
    elif policy == "core":
        state = "in force" if max(widths) <= _threads_per_core() else "altered"
    else:
        state = "not observable"
    return ReadBack(state, policy, shown, "affinity of the ranks")


def _threads_per_core() -> int:
    try:
        return max(1, len(cpus_of(_SIBLINGS.read_text())))
    except OSError:
        return 1
