"""Damaged documents are refused in words, whatever is wrong with them.

A few tries here; ``python -m tests.fuzz.long --tries 100000`` goes on for long and counts.
"""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.fuzz.damage import DAMAGES, damaged
from tests.fuzz.parsers import PARSERS


@pytest.mark.parametrize("name", PARSERS)
def test_a_damaged_document_is_read_or_refused(name: str) -> None:
    parser = PARSERS[name]

    @settings(max_examples=parser.tries, suppress_health_check=[HealthCheck.too_slow])
    @given(seed=st.integers(0, 2**32))
    @example(seed=0)
    def check(seed: int) -> None:
        with contextlib.suppress(*parser.promised):
            parser.read(parser.damage(parser.seeds, seed))

    check()


@pytest.mark.parametrize("name", PARSERS)
def test_what_is_not_damaged_is_read(name: str) -> None:
    parser = PARSERS[name]
    for seed in parser.seeds:
        parser.read(seed)


def test_the_damages_differ() -> None:
    texts = {damaged(("a = 1\nb = [2, 3]\n",), seed) for seed in range(200)}
    assert len(texts) > 100
    assert len(DAMAGES) >= 8
