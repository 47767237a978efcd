"""Candidates for a surrogate: all settings of a small space, a climb in a large one.

The second part gives every setting of a space in a seeded order, without storing them if there are
many.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from autotune.space import Setting, Space
from autotune.strategies._codec import Codec, Codes

Matrix = NDArray[np.intp]
Score = Callable[[Matrix], NDArray[np.float64]]
"""The acquisition value of each row of codes; larger is better."""

LISTED = 1500
"""Largest number of settings for which all are listed and scored."""
_STEPS = 12
_SETTLED = 32
"""Number of the best raw candidates that are brought into canonical form."""


class Pool:
    """Candidates of one space, in canonical form."""

    def __init__(self, space: Space, codec: Codec) -> None:
        self._codec = codec
        self._listed = _list_all(space, codec)
        self._known: list[Codes] = []
        self._settled_for = -1

    @property
    def small(self) -> bool:
        """Whether all settings are listed."""
        return self._listed is not None

    def candidates(self, seeds: Sequence[Codes], expected: Score, score: Score) -> list[Codes]:
        """Canonical codes without repetition.

        In a small space these are all settings. In a large one they are the neighbours (one change
        away) with the best ``score``: those of the ``seeds``, and those of the top of a climb on
        the ``expected`` value. So levels that were seen to help are combined at once, but unknown
        levels are tried one at a time: most of them cost time, and many at once hide what helps.
        """
        if self._listed is not None:
            return self._all()
        top = self._climb(seeds[0], expected)
        met: dict[Codes, float] = {}
        for start in dict.fromkeys([top, *seeds]):
            self._rate([start, *self._neighbours(start)], met, score)
        best_first = sorted(met, key=lambda c: -met[c])
        return self._settle([top, *best_first[:_SETTLED]])

    def _all(self) -> list[Codes]:
        # The set of inactive parameters only grows; the list is brought into canonical form again
        # when it does.
        if self._settled_for != len(self._codec.idle):
            self._settled_for = len(self._codec.idle)
            assert self._listed is not None
            self._known = self._settle(self._listed)
        return self._known

    def _climb(self, top: Codes, expected: Score) -> Codes:
        """Change one parameter after the other as long as an improvement is expected."""
        met: dict[Codes, float] = {}
        self._rate([top], met, expected)
        for _ in range(_STEPS):
            around = self._neighbours(top)
            self._rate(around, met, expected)
            best = max(around, key=met.__getitem__)
            if met[best] <= met[top]:
                break
            top = best
        return top

    def _rate(self, codes: Sequence[Codes], met: dict[Codes, float], score: Score) -> None:
        fresh = [c for c in dict.fromkeys(codes) if c not in met]
        if fresh:
            met.update(zip(fresh, score(np.array(fresh, dtype=np.intp)).tolist(), strict=True))

    def _neighbours(self, codes: Codes) -> list[Codes]:
        found = []
        setting = self._codec.decode(codes)
        for place, size in enumerate(self._codec.sizes.tolist()):
            if self._codec.idle.does_nothing(self._codec.names[place], setting):
                continue
            for level in range(size):
                if level != codes[place]:
                    found.append((*codes[:place], level, *codes[place + 1 :]))
        return found

    def _settle(self, codes: Sequence[Codes]) -> list[Codes]:
        settled = (self._codec.settle_codes(c) for c in codes)
        return list(dict.fromkeys(c for c in settled if c is not None))


def _list_all(space: Space, codec: Codec) -> list[Codes] | None:
    """Every setting, or None if there are many (or if they are rare among the raw combinations)."""
    found = space.listed(LISTED)
    if found is None:
        return None
    return [codes for setting in found if (codes := codec.encode(setting)) is not None]


_LISTED = 20_000
"""Largest number of raw combinations for which the settings are listed and shuffled."""
_MISSES = 20_000
"""Number of raw combinations in a row without a valid setting after which random order ends."""
_ROUNDS = 4


class Permutation:
    """A pseudo-random bijection of ``range(size)`` that needs no memory.

    It is a balanced Feistel network over the next even number of bits. A result outside the range
    is mapped again until it is inside ("cycle walking"), so the map stays a bijection.
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


def seeded_order(space: Space, codec: Codec, seed: int) -> Iterator[Setting]:
    """Every distinct valid setting, lazily, in an order given by the seed.

    If valid settings are so rare that a random order of the combinations finds none for long, the
    rest follows in grid order; some settings then come twice.
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

    A setting that is not new never becomes new, so the cursor only moves forward. A new object with
    the same knowledge finds the same setting.
    """

    def __init__(self, space: Space, codec: Codec, seed: int, *, grid: bool = False) -> None:
        self._codec = codec
        self._order = space.enumerate() if grid else seeded_order(space, codec, seed)

    def first(self, is_new: Callable[[Setting], bool]) -> Setting | None:
        """The next new setting in canonical form; None if there is none left."""
        for setting in self._order:
            if is_new(setting):
                return self._codec.settle(setting)
        return None


def _digits(index: int, codec: Codec) -> Codes:
    """The combination with this number; the last parameter varies fastest."""
    codes = []
    for size in reversed(codec.sizes.tolist()):
        index, code = divmod(index, size)
        codes.append(code)
    return tuple(reversed(codes))
