"""The peer Nevergrad: the optimiser that it chooses itself."""

# mypy: disable-error-code="import-not-found, import-untyped, misc"

from __future__ import annotations

import warnings
from collections.abc import Mapping

import nevergrad as ng

from autotune.space import DEFAULT, Setting
from autotune.strategies.codec import Codes
from benchmarks.search.peers.base import Peer

_BUDGET = 150
"""Number of trials that a peer as it comes is told."""


class Nevergrad(Peer):
    """NGOpt over unordered choices; matched: transitions between ordered levels, its own budget."""

    name = "nevergrad"
    budgeted = True

    def prepare(self) -> None:
        warnings.simplefilter("ignore")
        names = [f"p{i:03d}" for i in range(len(self.sizes))]
        kinds = [ng.p.TransitionChoice if ordered else ng.p.Choice for ordered in self.ordered]
        sizes = zip(names, self.sizes, kinds, strict=True)
        choices = ng.p.Dict(**{name: kind(list(range(size))) for name, size, kind in sizes})
        choices.random_state.seed(self.seed % 2**32)
        budget = self.trials or _BUDGET
        self._optimiser = ng.optimizers.NGOpt(parametrization=choices, budget=budget)
        if self.trials is not None and self.default is not None:
            self._optimiser.suggest(dict(zip(names, self.default, strict=True)))

    def draw(self) -> Codes:
        self._candidate = self._optimiser.ask()
        return _ranks(self._candidate.value)

    def recommendation(self) -> Setting | None:
        """The optimiser's own recommendation, which it need not have tried."""
        found = self._optimiser.provide_recommendation()
        setting = None if found is None else self.setting(_ranks(found.value))
        return None if setting == DEFAULT else setting

    def report(self, ranks: Codes, loss: float) -> None:
        self._optimiser.tell(self._candidate, loss)


def _ranks(values: Mapping[str, int]) -> Codes:
    return tuple(int(values[name]) for name in sorted(values))
