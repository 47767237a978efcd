"""Standard output whose reader has gone, as in ``program | head``."""

from __future__ import annotations

import os
import sys


def drop_output() -> None:
    """Write nothing more to standard output, not even what the interpreter holds at its end."""
    place = os.open(os.devnull, os.O_WRONLY)
    os.dup2(place, sys.stdout.fileno())
    os.close(place)
