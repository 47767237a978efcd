"""The peer pyATF: its AUC bandit over annealing, pattern search and Torczon's simplex."""

# mypy: disable-error-code="import-not-found, import-untyped, misc"

from __future__ import annotations

import random

from pyatf.search_techniques import AUCBandit, PatternSearch, SimulatedAnnealing, Torczon

from autotune.strategies.codec import Codes
from benchmarks.search.peers.base import Peer


class PyATF(Peer):
    """Coordinates in (0, 1], as pyATF's tuner passes them to a space without constraints.

    Matched: sizes lie in order; pyATF takes no start, no first setting and no number of trials.
    """

    name = "pyatf"

    def prepare(self) -> None:
        random.seed(self.seed)  # pyATF draws from the global generator.
        # New techniques: the default ones are shared by every bandit of a process.
        self._bandit = AUCBandit((SimulatedAnnealing(), PatternSearch(), Torczon()))
        self._bandit.initialize(len(self.sizes))
        self._waiting: list[tuple[float, ...]] = []
        self._costs: dict[tuple[float, ...], float] = {}

    def draw(self) -> Codes:
        if not self._waiting:
            if self._costs:
                self._bandit.report_costs(self._costs)
                self._costs = {}
            self._waiting = sorted(self._bandit.get_next_coordinates())
        pairs = zip(self._waiting[0], self.sizes, strict=True)
        return tuple(min(int(x * size), size - 1) for x, size in pairs)

    def report(self, ranks: Codes, loss: float) -> None:
        self._costs[self._waiting.pop(0)] = loss
