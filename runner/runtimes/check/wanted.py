"""Whether this run is to be checked: the environment says so.

Apart from the check itself, so that programs that are not checked import nothing of it.
"""

from __future__ import annotations

import os

FILE = "AUTOTUNE_GRAPH_CHECK"
"""Environment variable: the file for the results; the program is checked if it is set."""
SEED = "AUTOTUNE_GRAPH_SEED"
"""Environment variable: the seed of the schedule; empty for the order of the source."""


def is_wanted() -> bool:
    """True if this run is to be checked."""
    return bool(os.environ.get(FILE))


def schedule_seed() -> int | None:
    """The seed of this run's schedule."""
    seed = os.environ.get(SEED, "")
    return int(seed) if seed else None
