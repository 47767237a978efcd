"""What ranks do of which one is killed: each notes in a file what it was told."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from runner.runtimes.intranode import RankLost

MOST_S = 20.0
"""Seconds until a rank ends although others have noted nothing."""


def noted(rank: int, ranks: int, place: Path, work: Callable[[], None]) -> NoReturn:
    """Work until a rank of ``ranks`` is lost; end when all others have noted it."""
    try:
        work()
    except RankLost as error:
        (place / f"{rank}").write_text(f"{error.code}: {error}")
    # The launcher ends the job when the first of them ends.
    until = time.monotonic() + MOST_S
    while len(list(place.iterdir())) < ranks - 1 and time.monotonic() < until:
        time.sleep(0.02)
    # MPI would wait for the rank that has died.
    os._exit(0)
