"""Which settings are worth asking a model about: all of a small space, a climb in a large one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from autotune.space import Space
from autotune.strategies._codec import Codec, Codes

Matrix = NDArray[np.intp]
Score = Callable[[Matrix], NDArray[np.float64]]
"""How promising each row of codes is, larger is better."""

LISTED = 1500
"""Settings up to which all are listed and scored."""
_STEPS = 12
_SETTLED = 32
"""The best raw candidates that are brought into their one form."""


class Pool:
    """Candidates of one space, in their canonical form."""

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

        All of a small space.  Of a large one, what ``score`` likes best one change away from the
        ``seeds`` and from the top of a climb on what is ``expected``: levels that were seen to help
        are put together at once, but unknown ones are tried one at a time, since most of them cost
        something and many at once hide what helps.
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
        # What is known to do nothing only grows, and what is listed is settled anew when it does.
        if self._settled_for != len(self._codec.idle):
            self._settled_for = len(self._codec.idle)
            assert self._listed is not None
            self._known = self._settle(self._listed)
        return self._known

    def _climb(self, top: Codes, expected: Score) -> Codes:
        """Change one parameter after the other as long as that is expected to help."""
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
    """Every setting, or None where they are many (or rare among the raw combinations)."""
    found = space.listed(LISTED)
    if found is None:
        return None
    return [codes for setting in found if (codes := codec.encode(setting)) is not None]
