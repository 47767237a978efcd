"""The meaning of a launch's fixed options and placement for Open MPI."""

from __future__ import annotations

from runner.types import LaunchSpec

_WIDE = ("l1cache", "l2cache", "l3cache", "numa", "package", "socket")


def unbound(spec: LaunchSpec, prrte: bool) -> tuple[str, ...]:
    """Options that unbind a launch on some cores if the launcher's own binding would leave them."""
    has_binding = "bind_to" in spec.placement or "--bind-to" in spec.launch_options
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
