"""The number of updates before a decaying field leaves the range of doubles."""

from __future__ import annotations

import math

from runner.programs.apps.common.errors import AppUsageError
from runner.programs.apps.common.grid import Shape, show_shape

LEAST = 1e-140
"""The square of a value of this size is still a normal number."""


def most_updates(factor: float) -> int:
    """Number of updates after which a wave that shrinks by ``factor`` has decayed to
    :data:`LEAST`."""
    return int(math.log(LEAST) / math.log(abs(factor)))


def check_updates(switch: str, updates: int, limit: int, size: Shape) -> None:
    """Refuse more updates than ``limit`` (:func:`most_updates`) for a grid of ``size`` cells.

    Beyond them nothing can be verified, and denormal numbers distort the times. Raises
    :class:`AppUsageError` that names the switch.
    """
    if updates > limit:
        raise AppUsageError(
            f"{switch} {updates} are too many for {show_shape(size)} cells: the field would "
            f"vanish below the range of double precision; use at most {limit}, or a larger size",
            code="app_option.range",
        )
