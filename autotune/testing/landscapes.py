"""Landscapes and spaces for tests of strategies, and a loop that drives a strategy."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence

from autotune.space import LibraryChoice, Parameter, Setting, Space, parse_expression
from autotune.space.space import Constraint
from autotune.strategies import Observation, Strategy

Measure = Callable[[Setting], tuple[float | None, str]]
Attributes = Callable[[Setting], dict[str, object]]
"""What a run says of its parameters: names that are inactive there, or unused anywhere."""


def fine(setting: Setting) -> tuple[float | None, str]:
    """A smooth landscape: each right value makes the setting faster."""
    good = {"size": 256, "flag": 1, "word": "ring"}
    right = sum(setting.get(name) == value for name, value in good.items())
    return 1.0 - 0.1 * right + 0.01 * len(setting), "ok"


def rough(setting: Setting) -> tuple[float | None, str]:
    """Some settings fail, some are stopped by the time limit; always the same ones."""
    luck = random.Random(setting.key).random()
    if luck < 0.25:
        return None, "failed"
    if luck < 0.5:
        return 3.0, "censored"
    return 0.9 + luck / 4, "pruned" if luck < 0.55 else "ok"


def hopeless(setting: Setting) -> tuple[float | None, str]:
    """Every setting fails."""
    return None, "failed"


def observe(number: int, setting: Setting, measure: Measure, attrs: object = None) -> Observation:
    """The observation as returned by a store: its attributes have passed through JSON."""
    estimate, state = measure(setting)
    return Observation(number, setting, estimate, state, json.loads(json.dumps(attrs or {})))


def drive(
    strategy: Strategy, trials: int, measure: Measure, first: int = 0, idle: str | None = None
) -> list[Observation]:
    """Ask, measure and tell; fewer observations if the strategy ends by itself.

    From trial 7 on, the parameter ``idle`` is reported as inactive.
    """
    observations = []
    for number in range(first, first + trials):
        proposal = strategy.ask()
        if proposal is None:
            break
        attrs = dict(proposal.attrs)
        if idle and number >= 7:
            attrs["inactive"] = [idle]
        observations.append(observe(number, proposal.setting, measure, attrs))
        strategy.tell(observations[-1])
    return observations


def drive_to_the_end(strategy: Strategy, measure: Measure, attributes: Attributes) -> list[Setting]:
    """Ask, measure and tell until the strategy ends by itself; returns the proposals in order."""
    proposed: list[Setting] = []
    while (proposal := strategy.ask()) is not None:
        proposed.append(proposal.setting)
        estimate, state = measure(proposal.setting)
        strategy.tell(
            Observation(
                len(proposed), proposal.setting, estimate, state, attributes(proposal.setting)
            )
        )
    return proposed


def inactive_size(_: Setting) -> dict[str, object]:
    return {"inactive": ["size"]}


def unused_size(_: Setting) -> dict[str, object]:
    return {"unused": ["size"]}


def inactive_size_by_node(setting: Setting) -> dict[str, object]:
    by_node = setting.get("map_by") == "node" and "size" in setting
    return {"inactive": ["size"]} if by_node else {}


def keys(observations: Sequence[Observation]) -> list[str]:
    """The keys of the settings, in the order of the observations."""
    return [o.setting.key for o in observations]


_SIZE = Parameter("size", (64, 256, 1024), default=128)
_FLAG = Parameter("flag", (0, 1), default=0)
_WORD = Parameter("word", ("ring", "tree"))

SINGLE = Space("single", (Parameter("size", (1, 2, 3, 4)),))

SMALL = Space("small", (_SIZE, _FLAG, _WORD))
"""24 settings."""

RULES = Space(
    "ruled",
    (
        Parameter("low", (1, 2, 4)),
        Parameter("high", (1, 2, 4), default=4),
        _FLAG,
        Parameter("depth", (1, 2), when=parse_expression("flag == 1")),
    ),
    (Constraint(parse_expression("low <= high"), "the low limit is below the high one"),),
)
"""A space with a condition and a constraint."""

MAPPINGS = Space(
    "mapped",
    (_SIZE, _WORD, Parameter("map_by", ("node", "slot"), target="placement", default="slot")),
)
"""A parameter that is inactive under one mapping may be active under another."""

INVALID_DEFAULT = Space(
    "forced",
    (Parameter("ranks", (1, 2, 4), target="resource", unset=False), _FLAG, _WORD),
)
"""A space whose default is not valid."""

CHOICE = LibraryChoice.of(
    SMALL,
    {
        "other-1.0": Space(
            "other",
            (
                Parameter("flag", (0, 1), default=1),
                Parameter("word", ("tree", "bush")),
                Parameter("depth", (1, 2), when=parse_expression("flag == 1")),
            ),
        )
    },
)
"""Two MPI libraries that differ in parameters, levels and defaults; 36 settings."""

WIDE = Space("wide", tuple(Parameter(f"w{i:02}", (1, 2, 3)) for i in range(12)))
"""More combinations than anybody can enumerate."""

MANY = Space(
    "many",
    (
        _SIZE,
        _FLAG,
        _WORD,
        *(Parameter(f"p{i}", tuple(2**k for k in range(2 + i % 5))) for i in range(12)),
        Parameter("depth", (1, 2, 3), when=parse_expression("flag == 1")),
    ),
    (Constraint(parse_expression("p3 <= p4")),),
)
"""A space with far more settings than are ever tried."""
