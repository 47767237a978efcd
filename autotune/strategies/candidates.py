"""Candidates for a surrogate: all settings of a small space, a climb in a large one.

:func:`seeded_order` yields every setting of a space in a seeded order; a large space is not stored.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import Protocol

import numpy as np

from autotune.errors import UsageError
from autotune.space import Setting, Space
from autotune.strategies.codec import Codec, Codes
from autotune.strategies.levels import Floats, Matrix


class Acquisition(Protocol):
    """The acquisition: the value of running a setting; larger is better."""

    def values(self, codes: Matrix) -> Floats:
        """The value of each setting, shape (settings,)."""

    def changes(self, codes: Codes) -> Floats:
        """The value of a setting after each change of one parameter, shape (choices,).

        The choices of all parameters are in one row, parameter after parameter.
        """


LISTING_LIMIT = 1500
"""Largest number of settings that are all listed and scored."""
_STEPS = 20
"""Largest number of changes of one climb."""
_BRANCHES = 6
"""Number of neighbours of each step of a climb that become candidates."""
_CANONICAL_LIMIT = 32
"""Number of the best raw candidates that are converted to canonical form."""
_DRAWS = 20
"""Random settings of which a balanced start is one."""


def crowding(rows: Matrix, running: Collection[Codes]) -> Floats:
    """How many of the settings being run each row is, or is one change away from; shape (rows,).

    The value of a candidate is divided by one more than this, a local penalty: workers that ask at
    the same time then measure different things. ``rows`` are codes, shape (rows, parameters).
    """
    counts = np.zeros(len(rows))
    for codes in running:
        counts += (rows != np.array(codes, dtype=np.intp)).sum(axis=1) <= 1
    return counts


class Listing:
    """All settings of a small space (``raw_codes``: their codes), in canonical form."""

    def __init__(self, codec: Codec, raw_codes: Sequence[Codes]) -> None:
        self._codec = codec
        self._raw_codes = raw_codes
        self._canonical_codes: list[Codes] = []
        self._settled_for = -1

    def settings(self) -> list[Codes]:
        """Canonical codes without repetition."""
        # The set of inactive parameters only grows; the list is then made canonical again.
        if self._settled_for != len(self._codec.idle):
            self._settled_for = len(self._codec.idle)
            self._canonical_codes = _settle(self._codec, self._raw_codes)
        return self._canonical_codes


def listing(space: Space, codec: Codec) -> Listing | None:
    """Every setting, or None if there are many (or if valid ones are rare among the
    combinations)."""
    settings = space.all_settings(LISTING_LIMIT)
    if settings is None:
        return None
    return Listing(codec, [c for setting in settings if (c := codec.encode(setting)) is not None])


class Climb:
    """Finds candidates in a large space."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._starts = np.cumsum(codec.sizes) - codec.sizes

    def candidates(
        self,
        starts: Sequence[Codes],
        acquisition: Acquisition,
        is_new: Callable[[Codes], bool],
    ) -> list[Codes]:
        """The best settings on a climb from each of the ``starts``, as canonical codes.

        A climb changes one parameter after the other as long as the ``acquisition`` grows, so the
        expected costs decide how many unknown levels it combines. It visits only new settings.
        """
        values_by_codes: dict[Codes, float] = {}
        for start in dict.fromkeys(starts):
            self._climb(start, acquisition, is_new, values_by_codes)
        return _settle(
            self._codec,
            sorted(values_by_codes, key=lambda c: -values_by_codes[c])[:_CANONICAL_LIMIT],
        )

    def _climb(
        self,
        top: Codes,
        acquisition: Acquisition,
        is_new: Callable[[Codes], bool],
        values_by_codes: dict[Codes, float],
    ) -> None:
        """Add to ``values_by_codes`` the best neighbours (one change away) of each step."""
        start = np.array([top], dtype=np.intp)
        height = float(acquisition.values(start)[0]) if is_new(top) else 0.0
        for _ in range(_STEPS):
            best = None
            for value, codes in self._neighbours(top, acquisition):
                if is_new(codes):
                    values_by_codes[codes] = value
                    best = best or (value, codes)
            if best is None or best[0] <= height:
                return
            height, top = best

    def _neighbours(self, codes: Codes, acquisition: Acquisition) -> list[tuple[float, Codes]]:
        """The best neighbours with their values, the best first."""
        values, starts = acquisition.changes(codes).copy(), self._starts
        values[starts + np.array(codes)] = -np.inf
        setting = self._codec.decode(codes)
        foreign = self._codec.space.foreign(setting)
        if self._codec.idle or foreign:
            idle = self._codec.idle.doing_nothing(setting) | foreign
            is_idle = np.array([name in idle for name in self._codec.names])
            values[np.repeat(is_idle, self._codec.sizes)] = -np.inf
        best = np.argsort(-values, kind="stable")[:_BRANCHES]
        places = np.searchsorted(starts, best, side="right") - 1
        levels = best - starts[places]
        return [
            (float(values[choice]), (*codes[:i], level, *codes[i + 1 :]))
            for choice, i, level in zip(
                best.tolist(), places.tolist(), levels.tolist(), strict=True
            )
            if values[choice] > -np.inf
        ]


def balanced_start(
    codec: Codec,
    known: Collection[Codes],
    is_new: Callable[[Codes], bool],
    rng: np.random.Generator,
) -> Codes | None:
    """The random new setting whose levels are rarest among the ``known`` ones; None: none drawn."""
    drawn: list[Codes] = []
    # Where valid settings are rare, only an enumeration finds one.
    with suppress(UsageError):
        for _ in range(_DRAWS):
            setting = codec.settle(codec.space.sample(rng))
            codes = None if setting is None else codec.encode(setting)
            if codes is not None and is_new(codes):
                drawn.append(codes)
    counts = [np.zeros(size) for size in codec.sizes.tolist()]
    for codes in known:
        for count, code in zip(counts, codes, strict=True):
            count[code] += 1.0

    def use(codes: Codes) -> float:
        pairs = zip(counts, codes, strict=True)
        return float(sum(count[code] * len(count) for count, code in pairs))

    return min(drawn, key=use, default=None)


def _settle(codec: Codec, codes: Sequence[Codes]) -> list[Codes]:
    canonical = (codec.settle_codes(c) for c in codes)
    return list(dict.fromkeys(c for c in canonical if c is not None))


_SHUFFLE_LIMIT = 20_000
"""Largest number of raw combinations for which the settings are listed and shuffled."""
_MISSES = 20_000
"""Random order ends after this number of consecutive raw combinations without a valid setting."""
_ROUNDS = 4


class Permutation:
    """A pseudo-random bijection of ``range(size)`` that needs no memory.

    It is a balanced Feistel network over the next even number of bits. A result outside the range
    is mapped again until it is inside ("cycle walking"), so the map stays a bijection.
    """

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._half = ((size - 1).bit_length() + 1) // 2
        key = seed.to_bytes(8, "big")
        self._turns = [
            hashlib.blake2b(b"%d:" % turn, key=key, digest_size=16) for turn in range(_ROUNDS)
        ]

    def __call__(self, index: int) -> int:
        index = self._mix(index)
        while index >= self._size:
            index = self._mix(index)
        return index

    def _mix(self, index: int) -> int:
        mask = (1 << self._half) - 1
        left, right = index >> self._half, index & mask
        for hasher in self._turns:
            round_hash = hasher.copy()
            round_hash.update(b"%d" % right)
            left, right = right, left ^ (int.from_bytes(round_hash.digest(), "big") & mask)
        return left << self._half | right


def seeded_order(space: Space, codec: Codec, seed: int) -> Iterator[Setting]:
    """Every distinct valid setting, lazily, in an order given by the seed.

    If valid settings are too rare for a random order of the combinations, the rest follows in grid
    order; some settings then occur twice.
    """
    if space.combinations() <= _SHUFFLE_LIMIT:
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


_OLD = {False: 20_000, True: 1_000_000}
"""A seeded order (False) and grid order (True) end after this number of consecutive known settings.

If most parameters of a space are inactive, all its combinations are the same few settings.
"""
_PULSE = 200


class UnvisitedSettings:
    """Finds the first setting of an order that is still new.

    The order leaves out parameters that are inactive in every setting; it restarts when more of
    them are known. A known setting never becomes new, so the cursor only moves forward. A new
    object with the same knowledge finds the same setting.
    """

    def __init__(self, space: Space, codec: Codec, seed: int, *, grid: bool = False) -> None:
        self._space = space
        self._codec = codec
        self._seed = seed
        self._grid = grid
        self._begin()

    def _begin(self) -> None:
        self._facts, self._defaults = len(self._codec.idle), self._codec.idle.space
        self._met_keys: set[str] = set()
        """Keys of the settings that the order has reached, in canonical form."""
        idle = self._codec.idle.everywhere
        space = self._space.without(dict.fromkeys(idle, "it does nothing here"))
        codec = self._codec if space is self._space else Codec(space)
        self._order = space.enumerate() if self._grid else seeded_order(space, codec, self._seed)
        self._ahead: deque[Setting] = deque()
        """Settings that :meth:`ahead` has returned, in their order."""

    def ahead(
        self, count: int, is_new: Callable[[Setting], bool], pulse: Callable[[], None]
    ) -> list[Setting]:
        """The new settings, at most ``count``, that :meth:`first` will return next."""
        while len(self._ahead) < count and (setting := self._further(is_new, pulse)) is not None:
            self._ahead.append(setting)
        return [s for s in self._ahead if is_new(s)][:count]

    def first(self, is_new: Callable[[Setting], bool], pulse: Callable[[], None]) -> Setting | None:
        """The next new setting in canonical form; None if none is left or found for long.

        ``pulse`` is called repeatedly, and ends the search by raising an exception.
        """
        idle = self._codec.idle
        if self._facts != len(idle) or self._defaults is not idle.space:
            self._begin()
        while self._ahead:
            if is_new(setting := self._ahead.popleft()):
                return setting
        return self._further(is_new, pulse)

    def _further(
        self, is_new: Callable[[Setting], bool], pulse: Callable[[], None]
    ) -> Setting | None:
        old = 0
        for at, setting in enumerate(self._order):
            if at % _PULSE == 0:
                pulse()
            if is_new(setting):
                return self._codec.settle(setting)
            old += 1
            canonical = self._codec.settle(setting)
            if canonical is not None and canonical.key not in self._met_keys:
                self._met_keys.add(canonical.key)
                old = 0
            if old >= _OLD[self._grid]:
                return None
        return None


def _digits(index: int, codec: Codec) -> Codes:
    """The combination with this number; the last parameter varies fastest."""
    codes = []
    for size in reversed(codec.sizes.tolist()):
        index, code = divmod(index, size)
        codes.append(code)
    return tuple(reversed(codes))
