"""Random numbers of compiled code."""

from __future__ import annotations

from runner.runtimes.core.atomic import inner, load, store


@inner
def draw(dice: int, below: int) -> int:
    """A random number from 0 to ``below - 1`` (xorshift); ``dice``: a word private to this
    thread."""
    x = load(dice)
    x ^= x << 13
    x ^= (x >> 7) & 0x1FFFFFFFFFFFFFF
    x ^= x << 17
    store(dice, x)
    return ((x >> 11) & 0xFFFFFFFFFF) % below
