"""Whole studies in which nothing is better than the default, and studies in which something is.

The procedure is the real one, run times are drawn from a noise model (benchmarks.study_simulation).
Seeds are fixed and bounds exact: 5 % of the studies plus two Monte-Carlo standard errors.
"""

from __future__ import annotations

import pytest

from benchmarks.study_simulation import NOISES, allowed, outcome


def false_answers(noise: str, studies: int, candidates: int) -> int:
    return sum(outcome(noise, candidates, 0.0, seed)[0] != "default" for seed in range(studies))


@pytest.mark.parametrize("noise", sorted(NOISES))
def test_false_winners_are_rare(noise: str) -> None:
    assert false_answers(noise, 40, 20) <= allowed(40)


@pytest.mark.parametrize("candidates", [40, 200])
@pytest.mark.parametrize("noise", sorted(NOISES))
@pytest.mark.slow
def test_false_winners_are_rare_in_a_thousand_studies(noise: str, candidates: int) -> None:
    assert false_answers(noise, 1000, candidates) <= allowed(1000)


@pytest.mark.parametrize(
    ("noise", "gain", "least"),
    [
        ("1 %", 0.05, 18),
        pytest.param("1 %", 0.10, 18, marks=pytest.mark.slow),
        ("5 %", 0.10, 16),
    ],
)
def test_gains_well_above_the_noise_are_found(noise: str, gain: float, least: int) -> None:
    found = [outcome(noise, 40, gain, seed)[0] for seed in range(20)]
    assert found.count("right") >= least
    assert found.count("false") <= allowed(20)
