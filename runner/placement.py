"""Reading mapping and binding back from the ranks' own affinity."""

from __future__ import annotations

import os
from pathlib import Path

from runner.types import ReadBack, ReadBackState

_SIBLINGS = Path("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")


def cpus_of(text: str) -> frozenset[int]:
    """The CPUs of a kernel list such as "0-1,4"."""
    cpus: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.strip():
            cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)


def read_back_placement(placement: dict[str, str], bindings: list[str]) -> dict[str, ReadBack]:
    """State of each requested policy.

    Binding is judged by the width of each rank's CPU list.  Mapping and ranking order leave no
    trace on one node that binding does not already show: they are ``not observable``.
    """
    states = {}
    for name, value in placement.items():
        if name == "bind_to":
            states[name] = _binding(value, bindings)
        else:
            states[name] = ReadBack("not observable", value)
    return states


def _binding(policy: str, bindings: list[str]) -> ReadBack:
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
