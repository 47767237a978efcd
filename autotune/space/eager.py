"""The eager limit: the size of a message up to which it is sent at once, by library and place.

Larger messages wait until their receiver answers. On a network with latency this is the largest
effect of a layout: parts below the limit leave without waiting.
"""

from __future__ import annotations

from collections.abc import Mapping

from autotune.space.setting import Value

_LIMITS: Mapping[str, Mapping[bool, tuple[tuple[str, ...], int]]] = {
    "openmpi": {
        True: (("btl_tcp_eager_limit",), 65536),
        False: (("btl_sm_eager_limit", "btl_vader_eager_limit"), 4096),
    },
}
"""By family, and whether there are several nodes: the parameters that set the limit (TCP or shared
memory), and its value if none does (Open MPI 4.1 and 5.0)."""
UNKNOWN = {True: 65536, False: 4096}
"""The limit that is assumed for other libraries."""


def eager_limit(family: str, nodes: int, setting: Mapping[str, Value]) -> int:
    """The eager limit in bytes under a setting."""
    several = nodes > 1
    names, usual = _LIMITS.get(family, {}).get(several, ((), UNKNOWN[several]))
    values = [value for name in names if isinstance(value := setting.get(name), int)]
    return values[0] if values else usual
