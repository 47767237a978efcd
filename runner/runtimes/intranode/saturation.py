"""The number of ranks that saturate a domain's memory, from copies by 1, 2, ... ranks at once."""

from __future__ import annotations

from collections.abc import Mapping

SHARE = 0.95
"""A number of ranks saturates the memory if its rate is this share of the largest one."""


def saturation_number(rates: Mapping[int, float]) -> int:
    """The smallest number of ranks whose total rate is nearly the largest one seen.

    ``rates``: bytes per time of all ranks together, by their number; any unit.  Raises
    ``ValueError`` if there are none.
    """
    if not rates:
        raise ValueError("no rates: expected at least one")
    largest = max(rates.values())
    return min(number for number, rate in rates.items() if rate >= SHARE * largest)
