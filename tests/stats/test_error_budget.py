"""One alpha for the life of a study."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import UsageError
from autotune.stats import ErrorBudget
from tests.refusals import refused


@given(alpha=st.floats(0.001, 0.5), rounds=st.integers(1, 60))
def test_all_rounds_together_never_spend_more_than_alpha(alpha: float, rounds: int) -> None:
    budget = ErrorBudget(alpha)
    spent = sum(budget.proof(n) + budget.slow_launches(n) for n in range(1, rounds + 1))
    assert spent <= alpha * (1 + 1e-12)


@given(alpha=st.floats(0.001, 0.5), number=st.integers(1, 59))
def test_each_round_spends_something_and_less_than_the_one_before(
    alpha: float, number: int
) -> None:
    budget = ErrorBudget(alpha)
    assert 0 < budget.round(number + 1) < budget.round(number)


def test_the_first_round_has_at_least_half_of_alpha() -> None:
    assert ErrorBudget(0.05).proof(1) >= 0.025


def test_values_that_make_no_budget_are_refused() -> None:
    with refused(UsageError, "proof.range"):
        ErrorBudget(0.0)
    with pytest.raises(ValueError, match="round 0"):
        ErrorBudget(0.05).round(0)
