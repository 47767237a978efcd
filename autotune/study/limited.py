"""A strategy that is stopped after a number of search runs."""

from __future__ import annotations

from collections.abc import Callable

from autotune.space import Setting
from autotune.strategies import Observation, Proposal, Strategy


class Limited:
    """Proposes nothing more once ``spent()``, the search runs so far, has reached ``runs``."""

    def __init__(self, strategy: Strategy, runs: int, spent: Callable[[], int]) -> None:
        self._strategy, self._runs, self.spent = strategy, runs, spent

    def ask(self) -> Proposal | None:
        """The next setting; None if the runs are used up, or the strategy ended by itself."""
        return None if self.spent() >= self._runs else self._strategy.ask()

    def tell(self, observation: Observation) -> None:
        self._strategy.tell(observation)

    def restore(self, observations: list[Observation]) -> None:
        """Do nothing: no state is stored."""

    @property
    def repeats(self) -> bool:
        return self._strategy.repeats

    def favourite(self) -> Setting | None:
        """The setting that the strategy itself estimates as best."""
        return self._strategy.favourite()
