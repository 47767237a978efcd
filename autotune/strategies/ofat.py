"""One factor at a time from the default, then the best levels together, then single changes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from autotune.space import Setting, Space
from autotune.strategies._codec import Codes
from autotune.strategies.base import Observation, Proposal, Strategy
from autotune.strategies.options import Option, OptionValue, table


class OneFactor(Strategy):
    """The search that a careful person does by hand.

    First every level of every parameter alone, in an order given by the seed. Then the best level
    of each parameter that was faster than the default, all together. Then single changes of the
    best setting, until none helps. Levels that failed or were stopped alone are not tried again.
    """

    name = "ofat"
    summary = "one factor at a time from the default, then the best levels combined"
    options = table(
        Option(
            "patience",
            "int",
            1,
            "1: ends when no single change helps; 0: goes on with the rest of the space",
            (0, 1),
        )
    )

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        priors: Sequence[Setting] = (),
        options: Mapping[str, OptionValue] | None = None,
    ) -> None:
        super().__init__(space, seed=seed, priors=priors, options=options)
        self._start: Codes = (0,) * len(self.codec.sizes)
        self._fitness: dict[Codes, float] = {self._start: 1.0}
        self._bad: set[tuple[int, int]] = set()
        changes = [
            (place, level)
            for place, size in enumerate(self.codec.sizes.tolist())
            for level in range(1, size)
        ]
        order = self.rng(0).permutation(len(changes)).tolist()
        self._changes = [changes[i] for i in order]

    def learn(self, observation: Observation) -> None:
        codes = self.codec.encode(self.space.canonical(observation.setting))
        if codes is None:
            return  # Off the grid: it cannot be combined with others.
        self._fitness[codes] = observation.fitness
        moved = [(p, c) for p, c in enumerate(codes) if c != self._start[p]]
        if len(moved) == 1 and (
            observation.state == "censored" or not math.isfinite(observation.fitness)
        ):
            self._bad.add(moved[0])

    def propose(self) -> Proposal | None:
        for codes in self._wanted():
            setting = self.codec.settle(self.codec.decode(codes))
            if setting is not None and self.is_new(setting):
                return Proposal(setting)
        return None if self.values["patience"] else self.anything_new()

    def _wanted(self) -> Iterator[Codes]:
        """The settings that are still to be tried, most urgent first."""
        yield self._start
        for place, level in self._changes:
            yield _with(self._start, place, level)
        yield self._together()
        best = min(self._fitness, key=lambda c: (self._fitness[c], c))
        yield from (_with(best, p, 0) for p in range(len(best)))
        for place, level in self._changes:
            if (place, level) not in self._bad:
                yield _with(best, place, level)

    def _together(self) -> Codes:
        """The best level of each parameter, if it was faster alone than the start."""
        best = list(self._start)
        for place in range(len(best)):
            alone = [c for c in range(int(self.codec.sizes[place])) if self._alone(place, c) < 1.0]
            if alone:
                best[place] = min(alone, key=lambda c: self._alone(place, c))
        return tuple(best)

    def _alone(self, place: int, level: int) -> float:
        start = self._fitness[self._start]
        ratio = self._fitness.get(_with(self._start, place, level), math.inf)
        return ratio / start if math.isfinite(start) else ratio


def _with(codes: Codes, place: int, level: int) -> Codes:
    return (*codes[:place], level, *codes[place + 1 :])
