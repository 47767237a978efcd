"""Uniform random search without repetition."""

from __future__ import annotations

import numpy as np

from autotune.errors import UsageError
from autotune.strategies.base import Proposal, Strategy

_TRIES = 100


class RandomSearch(Strategy):
    """Each proposal is a new draw: every parameter is uniform over its choices."""

    name = "random"
    summary = "valid settings drawn uniformly, none twice; the reference for all others"

    def propose(self) -> Proposal | None:
        rng = self.rng(self.ordinal)
        for _ in range(_TRIES):
            try:
                setting = self.codec.settle(self.space.sample(rng))
            except UsageError:
                break  # Valid settings are so rare that only an enumeration finds one.
            if setting is not None and self.is_new(setting):
                return Proposal(setting, spares=self._draws(rng) if self.spares else ())
        return self.anything_new()

    def _draws(self, rng: np.random.Generator) -> tuple[Proposal, ...]:
        """Further draws; where they are rare, some are missing."""
        drawn = (self.codec.settle(self.space.sample(rng)) for _ in range(self.spares))
        return tuple(Proposal(s) for s in drawn if s is not None and self.is_new(s))
