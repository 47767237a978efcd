"""The error budget of a study: one alpha for its whole life, spent over rounds.

A study that is extended proves again.  Each proof is a round; round k may spend three quarters of
what the rounds before it left, so all rounds together never spend more than alpha, however many
there are.  Most studies have one round, which is why the first gets most: with 3.4 % of 5 % it has
the order statistics that the whole 5 % would give to one finalist or two.
"""

from __future__ import annotations

from dataclasses import dataclass

from autotune.errors import UsageError

PROOF_SHARE = 0.9
"""Of a round's alpha for its finalists; the rest is for the rates of slow launches."""
ROUND_SHARE = 0.75
"""Of what is left, for the next round: 75 %, 18.8 %, 4.7 %, ... of alpha."""


@dataclass(frozen=True)
class ErrorBudget:
    """``alpha``: chance (0..1) of a false statement, both sides, over the life of one study."""

    alpha: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise UsageError(f"alpha {self.alpha}: expected a number between 0 and 1, such as 0.05")

    def round(self, number: int) -> float:
        """What round ``number`` (1, 2, ...) may spend.  ValueError for a number below 1."""
        if number < 1:
            raise ValueError(f"round {number}: rounds are counted from 1")
        return float(self.alpha * ROUND_SHARE * (1 - ROUND_SHARE) ** (number - 1))

    def proof(self, number: int) -> float:
        """Of it, for the finalists against the default."""
        return PROOF_SHARE * self.round(number)

    def slow_launches(self, number: int) -> float:
        """Of it, for the rates of slow launches."""
        return (1 - PROOF_SHARE) * self.round(number)
