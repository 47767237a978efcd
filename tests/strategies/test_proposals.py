"""A search that is begun again, or restored from what it was told, makes the same proposals.

The contract of strategies holds this in small spaces. Here parameters do nothing, defaults become
known, and trials fail, in a large space with conditions and a rule too.
"""

from __future__ import annotations

import random

from autotune.space import Parameter, Setting, Space
from autotune.space.expression import parse_expression
from autotune.space.space import Constraint
from autotune.strategies import (
    DEFAULTS,
    INACTIVE,
    SCATTER,
    UNUSED,
    Observation,
    Strategy,
    create,
)
from autotune.testing.landscapes import INVALID_DEFAULT, MAPPINGS, keys
from tests.case_table import case_table

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
LISTED = Space("listed", tuple(Parameter(f"p{i}", ("u", "v", "w")) for i in range(4)))
"""256 settings, all of which ``auto`` lists."""
TRIALS, KILLED = 30, 20


def ratio(setting: Setting) -> tuple[float | None, str]:
    """Ratios that are drawn by the setting's key; one setting in twenty fails."""
    drawn = random.Random(setting.key)
    return (None, "failed") if drawn.random() < 0.05 else (drawn.uniform(0.7, 1.3), "ok")


def search(strategy: Strategy, unused: str, first: int = 0) -> list[Observation]:
    """A search that learns of parameters that do nothing, and of a value in force."""
    told: list[Observation] = []
    for number in range(first, TRIALS):
        proposal = strategy.ask()
        if proposal is None:
            break
        attrs = {**proposal.attrs, SCATTER: [0.001, 6.0 + number]}
        if number == 0:
            attrs |= {UNUSED: [unused], DEFAULTS: {"carrier": "ob1"}}
        if number % 6 == 4:
            attrs[INACTIVE] = sorted(proposal.setting)[:1]
        told.append(Observation(number, proposal.setting, *ratio(proposal.setting), attrs))
        strategy.tell(told[-1])
    return told


@case_table("name", ["auto", "ga", "random"])
@case_table(
    ("space", "unused"),
    [(LARGE, "algorithm_5"), (LISTED, "p2"), (MAPPINGS, ""), (INVALID_DEFAULT, "")],
)
def test_a_search_goes_on_as_one_that_was_never_interrupted(
    name: str, space: Space, unused: str
) -> None:
    options = {} if name == "random" else {"patience": 0}
    whole, again, restored = (create(name, space, seed=3, options=options) for _ in range(3))
    told = search(whole, unused)
    assert len(told) > 5
    assert keys(search(again, unused)) == keys(told)
    restored.restore(told[:KILLED])
    assert keys(search(restored, unused, KILLED)) == keys(told[KILLED:])
