"""Names of Open MPI's parameters that another generation of it calls differently."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NEW_NAMES: tuple[tuple[str, str], ...] = (
    # pattern of a name, name in another generation
    (r"btl_vader_(\w+)", r"btl_sm_\1"),
    (r"btl_sm_(\w+)", r"btl_vader_\1"),
    (r"mpi_preconnect_(?:mpi|oob)", "mpi_preconnect_all"),
    (r"coll_hierarch_(\w+)", r"coll_han_\1"),
    (r"opal_leave_pinned", "mpi_leave_pinned"),
    # Those of the run-time that starts the ranks: ORTE in 4.1, PRRTE in 5.0.
    (r"orte_(\w+)", r"prte_\1"),
    (r"prte_(\w+)", r"orte_\1"),
    (r"plm_rsh_(\w+)", r"plm_ssh_\1"),
    (r"plm_ssh_(\w+)", r"plm_rsh_\1"),
    (r"(rmaps|hwloc)_base_(\w+)", r"\1_default_\2"),
    (r"(rmaps|hwloc)_default_(\w+)", r"\1_base_\2"),
)
OBSOLETE_NAMES: tuple[tuple[str, str], ...] = (
    # pattern of the old name, what replaces it
    (r"btl_vader_single_copy_mechanism", 'in 5.0 smsc = "^cma" does what "none" did'),
    (r"smsc", "in 4.1 this is btl_vader_single_copy_mechanism (cma, emulated, none)"),
    (r"(?:mpi|opal)_paffinity_alone|hwloc_base_binding_policy", "use the parameter bind_to"),
    (r"rmaps_\w*(?:mapping|schedule)_policy", "use the parameter map_by"),
    (r"rmaps_\w*ranking_policy", "use the parameter rank_by"),
    (
        r"(?:orte|plm|rmaps|ras|odls|oob|ess|state)_\w+",
        'it is PRRTE\'s in 5.0: set target = "prte"',
    ),
    (r"btl_openib_\w+", "the component openib is not in this library; InfiniBand is driven by UCX"),
    (r"btl_(?:sm|vader)_(?:num_)?fifos?(?:_size)?", "shared memory has no such queues any more"),
)
NEW_VALUES = {
    ("btl_vader_single_copy_mechanism", "none"): ("smsc", "^cma,knem,xpmem"),
    ("smsc", "^cma"): ("btl_vader_single_copy_mechanism", "none"),
    ("smsc", "^cma,knem,xpmem"): ("btl_vader_single_copy_mechanism", "none"),
    ("mpi_paffinity_alone", "1"): ("hwloc_default_binding_policy", "core"),
    ("btl_openib_allow_ib", "1"): ("pml", "ucx"),
}
"""A value of a parameter -> the parameter and value of another generation that mean the same."""


def new_names(name: str) -> Iterator[str]:
    """What other generations may call a parameter, the most likely one first."""
    for pattern, replacement in _NEW_NAMES:
        if match := re.fullmatch(pattern, name):
            yield match.expand(replacement)
