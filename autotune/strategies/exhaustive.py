"""Exhaustive search: every setting of the space, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autotune.space import Setting, Space
from autotune.strategies.base import Proposal, Strategy
from autotune.strategies.candidates import UnvisitedSettings
from autotune.strategies.options import Option, OptionValue, table


class Exhaustive(Strategy):
    """All settings but the default, which the study measures in any case.

    The order is shuffled by default: a short budget then covers the whole space thinly, while grid
    order would vary only the last parameters.
    """

    name = "exhaustive"
    summary = "every valid setting once; for small spaces"
    options = table(
        Option(
            "order",
            "choice",
            "random",
            "random: shuffled by the seed; grid: the last parameter varies fastest",
            ("random", "grid"),
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
        grid = self.values["order"] == "grid"
        self._unvisited_settings = UnvisitedSettings(space, self.codec, self.seed, grid=grid)

    def propose(self) -> Proposal | None:
        return self.anything_new()
