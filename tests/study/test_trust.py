"""Every way to a false recommendation, simulated on the real procedure.

benchmarks.trust_simulation draws the run times.  Bounds are exact: false answers that a true rate
of 5 % exceeds in 2.5 % of the cases at most; 400 studies refuse a true rate of 10 % with more than
95 %.  The short versions run every day, the whole ones with ``-m slow``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from benchmarks.harness.simulation import simulated
from benchmarks.trust_simulation import (
    ADVERSE,
    EXTENSIONS,
    SLOW_CASES,
    Named,
    adverse,
    allowed,
    extended,
    named,
    refused,
    slow_named,
)

STUDIES = 400


def run(one: Callable[[int], Any], studies: int) -> list[Any]:
    """A study for every seed, on all cores."""
    with simulated() as every:
        outcomes: list[Any] = every(one, studies)
    return outcomes


def test_the_bound_refuses_a_true_rate_of_ten_percent() -> None:
    assert refused(STUDIES) >= 0.95


@pytest.mark.parametrize("kind", EXTENSIONS)
def test_an_extended_study_rarely_names_what_is_not_there(kind: str) -> None:
    assert sum(extended(kind, 3, seed) for seed in range(8)) <= allowed(8)


@pytest.mark.slow
@pytest.mark.parametrize("extensions", range(6))
@pytest.mark.parametrize("kind", EXTENSIONS)
def test_extensions_do_not_renew_the_error_budget(kind: str, extensions: int) -> None:
    false = sum(run(partial(extended, kind, extensions), STUDIES))
    assert false <= allowed(STUDIES)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ADVERSE))
def test_noise_of_another_shape_makes_no_winners(name: str) -> None:
    assert sum(run(partial(adverse, name), STUDIES)) <= allowed(STUDIES)


@pytest.mark.slow
@pytest.mark.parametrize(("cv", "gain", "least"), [(0.01, 0.05, 0.95), (0.05, 0.10, 0.85)])
def test_what_is_named_is_slim_and_its_fresh_gain_is_true(
    cv: float, gain: float, least: float
) -> None:
    found: list[Named] = run(partial(named, gain, cv), STUDIES)
    right = [one for one in found if one.right]
    assert len(right) >= least * STUDIES
    assert sum(one.false for one in found) <= allowed(STUDIES)
    assert sum(one.riders > 0 and one.said_slim for one in right) <= allowed(len(right))
    fresh = sorted(one.fresh for one in right if one.fresh == one.fresh)
    # The median of an unbiased figure lies on either side of the truth with one half.
    above = sum(value > gain for value in fresh)
    assert abs(above - len(fresh) / 2) <= 1.96 * (len(fresh) / 4) ** 0.5 + 1


@pytest.mark.slow
def test_slow_launches_are_told_apart_where_they_differ_only() -> None:
    cases = {name: rest for name, *rest in SLOW_CASES}
    none, rarer, more = (
        run(partial(slow_named, *cases[name]), STUDIES)
        for name in ("nobody differs", "the candidate has none", "the candidate alone has them")
    )
    assert none.count("rarer") + none.count("vetoed") <= allowed(STUDIES)
    assert rarer.count("rarer") >= 0.5 * STUDIES
    assert more.count("vetoed") >= 0.8 * STUDIES
