"""Proposals in a large space with conditions, a rule and inactive parameters stay what they were.

What makes a proposal fast (values kept by codes, tests that end early) must not change it.
"""

from __future__ import annotations

import hashlib
import random

import pytest

from autotune.space import Parameter, Setting, Space
from autotune.space.expression import parse_expression
from autotune.space.space import Constraint
from autotune.strategies import DEFAULTS, INACTIVE, SCATTER, UNUSED, Observation, create
from autotune.testing.landscapes import keys

DYNAMIC = parse_expression("dynamic == 1")
LARGE = Space(
    "large",
    (
        Parameter("carrier", ("ob1", "ucx")),
        Parameter("dynamic", (0, 1), default=0),
        *(Parameter(f"algorithm_{i}", (1, 2, 3, 4), when=DYNAMIC) for i in range(6)),
        *(Parameter(f"limit_{i}", (1024, 4096, 16384, 65536)) for i in range(4)),
        Parameter("ucx_only", ("a,b", "c"), when=parse_expression("carrier == 'ucx'")),
        Parameter("width", (1, 2), unset=False),
    ),
    constraints=(Constraint(parse_expression("limit_0 <= limit_1")),),
)
TRIALS = 45


def ratio(setting: Setting) -> tuple[float | None, str]:
    """Ratios that are drawn by the setting's key; one setting in twenty fails."""
    drawn = random.Random(setting.key)
    return (None, "failed") if drawn.random() < 0.05 else (drawn.uniform(0.7, 1.3), "ok")


def search(name: str, seed: int) -> list[Observation]:
    """A search that learns of parameters that do nothing, and of the carrier in force."""
    strategy = create(name, LARGE, seed=seed)
    told: list[Observation] = []
    for number in range(TRIALS):
        proposal = strategy.ask()
        if proposal is None:
            break
        attrs = {**proposal.attrs, SCATTER: [0.001, 6.0 + number]}
        if number == 0:
            attrs |= {UNUSED: ["algorithm_5"], DEFAULTS: {"carrier": "ob1"}}
        if number % 6 == 4:
            attrs[INACTIVE] = sorted(proposal.setting)[:1]
        told.append(Observation(number, proposal.setting, *ratio(proposal.setting), attrs))
        strategy.tell(told[-1])
    return told


@pytest.mark.parametrize(
    ("name", "seed", "digest"),
    [
        ("auto", 0, "6ff1a571cf8ef29f"),
        ("auto", 3, "b17fddf7fabecdd0"),
        ("ga", 0, "d2b492cff106a568"),
        ("ga", 3, "99e80e42adae98d4"),
        ("random", 0, "28e2f63992ada096"),
    ],
)
def test_the_proposals_are_what_they_were(name: str, seed: int, digest: str) -> None:
    found = hashlib.sha256("\n".join(keys(search(name, seed))).encode()).hexdigest()[:16]
    assert found == digest
