"""A shared-memory counter from which ranks draw their work; compiled."""

from __future__ import annotations

from runner.runtimes.core.atomic import add

FUNCTIONS = {"draw": "int64(int64)"}


def draw(place: int) -> int:
    """The value of the word at this address, which is then incremented."""
    return add(place, 1)
