"""Which levels are cliffs, against the exact posterior."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from autotune.space import Parameter, Space
from autotune.strategies.codec import Codec
from autotune.strategies.levels import Levels
from autotune.strategies.models.cliffs import CliffPrior, Cliffs
from tests.case_table import case_table

FLAGS = Space("flags", tuple(Parameter(f"p{i}", ("on",)) for i in range(6)))
FIXED = CliffPrior(weight=1e9)
"""The share of cliffs is known."""


def _probabilities(codes: list[list[int]], fell: list[bool], prior: CliffPrior) -> np.ndarray:
    """The probability that each flag is a cliff."""
    marks = np.array(fell, dtype=np.bool_)
    table = np.array(codes, dtype=np.intp).reshape(len(codes), 6)
    cliffs = Cliffs(Levels(Codec(FLAGS)), prior, table, marks, marks)
    assert (cliffs.log_clear[::2] == 0).all()  # A parameter that is left unset is no cliff.
    return 1 - np.exp(cliffs.log_clear[1::2])


def _exact(codes: list[list[int]], fell: list[bool], prior: CliffPrior) -> np.ndarray:
    total, each = 0.0, np.zeros(6)
    for flags in itertools.product((0, 1), repeat=6):
        weight = float(np.prod([prior.rate if f else 1 - prior.rate for f in flags]))
        for row, bad in zip(codes, fell, strict=True):
            hit = any(f and c for f, c in zip(flags, row, strict=True))
            chance = 1 - prior.miss_rate if hit else prior.sure
            weight *= chance if bad else 1 - chance
        total += weight
        each += weight * np.array(flags)
    return each / total


@case_table(
    ("codes", "fell"),
    [
        ([[1, 1, 1, 0, 0, 0]], [True]),
        ([[1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 0]], [True, True]),
        ([[1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 0]], [True, False, False]),
        ([[1, 1, 0, 0, 0, 0], [0, 1, 1, 1, 0, 0], [0, 0, 0, 1, 1, 1]], [True, True, False]),
    ],
)
def test_levels_share_the_blame_as_in_the_exact_posterior(
    codes: list[list[int]], fell: list[bool]
) -> None:
    found = _probabilities(codes, fell, FIXED)
    np.testing.assert_allclose(found, _exact(codes, fell, FIXED), atol=0.05)


def test_one_good_run_clears_all_of_its_levels() -> None:
    found = _probabilities([[1, 1, 1, 1, 1, 0]], [False], FIXED)
    assert (found[:5] < 0.01).all()
    assert found[5] == pytest.approx(FIXED.rate)


def test_the_share_of_cliffs_is_learned() -> None:
    rows = np.eye(6, dtype=np.intp).tolist()[:5]
    prior = CliffPrior()
    harmless, dear = (_probabilities(rows, [bad] * 5, prior)[5] for bad in (False, True))
    assert harmless < prior.rate < dear
    assert _probabilities([], [], prior) == pytest.approx(prior.rate)
