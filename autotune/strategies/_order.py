"""Every setting of a space in a seeded order, without keeping them where they are many."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import numpy as np

from autotune.space import Setting, Space
from autotune.strategies._codec import Codec, Codes

_LISTED = 20_000
"""Raw combinations up to which the settings are listed and shuffled."""
_MISSES = 20_000
"""Raw combinations in a row without a valid setting after which walking at random is given up."""
_ROUNDS = 4


class Permutation:
    """A pseudo-random bijection of ``range(size)`` that needs no memory.

    A balanced Feistel network over the next even number of bits; what falls outside the range is
    mapped again until it falls inside ("cycle walking"), which keeps it a bijection.
    """

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._half = ((size - 1).bit_length() + 1) // 2
        self._key = seed.to_bytes(8, "big")

    def __call__(self, index: int) -> int:
        index = self._mix(index)
        while index >= self._size:
            index = self._mix(index)
        return index

    def _mix(self, index: int) -> int:
        mask = (1 << self._half) - 1
        left, right = index >> self._half, index & mask
        for turn in range(_ROUNDS):
            text = b"%d:%d" % (turn, right)
            digest = hashlib.blake2b(text, key=self._key, digest_size=16).digest()
            left, right = right, left ^ (int.from_bytes(digest, "big") & mask)
        return left << self._half | right


def shuffled(space: Space, codec: Codec, seed: int) -> Iterator[Setting]:
    """Every distinct valid setting once, in an order given by the seed, lazily.

    Where valid settings are so rare that walking the combinations at random finds none for long,
    the rest follows in grid order (then some settings come twice).
    """
    if space.combinations() <= _LISTED:
        settings = list(space.enumerate())
        yield from (settings[i] for i in np.random.default_rng([seed]).permutation(len(settings)))
        return
    walk = Permutation(space.combinations(), seed)
    misses = 0
    for index in range(space.combinations()):
        codes = _digits(walk(index), codec)
        if codec.is_canonical(codes):
            misses = 0
            yield codec.decode(codes)
        else:
            misses += 1
            if misses == _MISSES:
                yield from space.enumerate()
                return


class Unvisited:
    """Finds the first setting of an order that is still new.

    What was not new once never becomes new, so the cursor only moves on; an object that starts
    afresh with the same knowledge finds the same setting.
    """

    def __init__(self, space: Space, codec: Codec, seed: int, *, grid: bool = False) -> None:
        self._codec = codec
        self._order = space.enumerate() if grid else shuffled(space, codec, seed)

    def first(self, is_new: Callable[[Setting], bool]) -> Setting | None:
        """The next new setting in its one form; None where there is none left."""
        for setting in self._order:
            if is_new(setting):
                return self._codec.settle(setting)
        return None


def _digits(index: int, codec: Codec) -> Codes:
    """The combination with this number, the last parameter varying fastest."""
    codes = []
    for size in reversed(codec.sizes.tolist()):
        index, code = divmod(index, size)
        codes.append(code)
    return tuple(reversed(codes))
