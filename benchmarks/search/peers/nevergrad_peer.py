"""The peer Nevergrad: the optimiser that it chooses itself."""

# mypy: disable-error-code="import-not-found, import-untyped, misc"

from __future__ import annotations

import warnings

import nevergrad as ng

from autotune.strategies._codec import Codes
from benchmarks.search.peers.base import Peer

_BUDGET = 150


class Nevergrad(Peer):
    """NGOpt over unordered choices."""

    name = "nevergrad"

    def prepare(self) -> None:
        warnings.simplefilter("ignore")
        names = [f"p{i:03d}" for i in range(len(self.sizes))]
        sizes = zip(names, self.sizes, strict=True)
        choices = ng.p.Dict(**{name: ng.p.Choice(list(range(size))) for name, size in sizes})
        choices.random_state.seed(self.seed % 2**32)
        self._optimiser = ng.optimizers.NGOpt(parametrization=choices, budget=_BUDGET)

    def draw(self) -> Codes:
        self._candidate = self._optimiser.ask()
        value = self._candidate.value
        return tuple(int(value[name]) for name in sorted(value))

    def report(self, codes: Codes, loss: float) -> None:
        self._optimiser.tell(self._candidate, loss)
