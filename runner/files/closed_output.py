"""Standard output whose reader is gone, as in ``program | head``."""

from __future__ import annotations

import os
import sys


def drop_output() -> None:
    """Write nothing more to standard output, including what the interpreter has buffered."""
    place = os.open(os.devnull, os.O_WRONLY)
    os.dup2(place, sys.stdout.fileno())
    os.close(place)
