"""What became of Open MPI parameters that a library does not have (any more, or yet)."""

from __future__ import annotations

import difflib
import re

from runner.mpi.library import Library

_RENAMED: tuple[tuple[str, str], ...] = (
    # pattern of the old name, new name
    (r"btl_vader_(\w+)", r"btl_sm_\1"),
    (r"btl_sm_(\w+)", r"btl_vader_\1"),
    (r"mpi_preconnect_(?:mpi|oob)", "mpi_preconnect_all"),
    (r"coll_hierarch_(\w+)", r"coll_han_\1"),
    (r"opal_leave_pinned", "mpi_leave_pinned"),
)
_GONE: tuple[tuple[str, str], ...] = (
    # pattern of the old name, what does its work now
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


def today(name: str, library: Library) -> str:
    """What to write in place of ``name``, as the end of a sentence."""
    spellings = [name]
    for pattern, replacement in _RENAMED:
        if match := re.fullmatch(pattern, name):
            spellings.append(match.expand(replacement))
            if spellings[-1] in library.params:
                return f"it is called {spellings[-1]} here"
    for pattern, advice in _GONE:
        if re.fullmatch(pattern, name):
            return advice
    near = _nearest(spellings, library)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return "no parameter here has a similar name"


def _nearest(spellings: list[str], library: Library) -> list[str]:
    """Up to two current names that look like one of the spellings, the best first."""
    current = [n for n, info in library.params.items() if info.synonym_of not in library.params]
    scores: dict[str, float] = {}
    for spelling in spellings:
        for name in difflib.get_close_matches(spelling, current, n=2, cutoff=0.75):
            score = difflib.SequenceMatcher(None, name, spelling).ratio()
            scores[name] = max(score, scores.get(name, 0.0))
    return sorted(scores, key=lambda name: (-scores[name], name))[:2]
