"""Mapping, binding and ranking: one policy has another name in each generation of Open MPI."""

from __future__ import annotations

POLICIES = {
    "map_by": ("rmaps_base_mapping_policy", "rmaps_default_mapping_policy"),
    "bind_to": ("hwloc_base_binding_policy", "hwloc_default_binding_policy"),
    "rank_by": ("rmaps_base_ranking_policy", "rmaps_default_ranking_policy"),
}
"""Placement as parameters: of Open MPI 4.1, and of PRRTE with 5.x."""

_PLACEMENT = {name: knob for knob, names in POLICIES.items() for name in names}


def placement_of(name: str) -> str | None:
    """``bind_to`` for ``hwloc_base_binding_policy``, and so on; None for any other parameter."""
    return _PLACEMENT.get(name)
