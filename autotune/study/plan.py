"""How much a study may do and how sure it must be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchPlan:
    """Budgets and error rates of one search.

    ``trials`` counts settings, ``budget_s`` machine seconds of the whole study, its confirmation
    included; None for either means no bound from it.  ``alpha`` is the chance of a false
    recommendation, ``min_gain`` the smallest gain worth naming.  None of the budgets is part of the
    study's identity: the same study goes on with a larger one.
    """

    trials: int | None = 100
    budget_s: float | None = None
    alpha: float = 0.05
    min_gain: float = 0.02
    finalists: int = 3
    default_every: int = 5
    """Search runs between two runs of the default."""
    first_defaults: int = 3
    limit_factor: float = 3.0
    """A run longer than this multiple of the default is stopped and stored as censored."""
    limit_slack_s: float = 1.0
    promising_runs: int = 3
    """Runs that a setting gets before it may become the best so far."""
    selected: int = 6
    select_blocks: int = 3
    prune_blocks: int = 8
    reserve_blocks: int = 12
    """Blocks of the confirmation that a time budget keeps back."""
