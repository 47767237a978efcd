"""The default strategy in a space with more settings than are listed."""

from __future__ import annotations

import math

from autotune.space import Parameter, Setting, Space
from autotune.strategies import create
from autotune.testing.landscapes import drive

WIDE = Space("wide", tuple(Parameter(f"p{i:02d}", ("a", "b", "c")) for i in range(20)))


def two_act(setting: Setting) -> tuple[float | None, str]:
    """p03=b and p07=c help, p05=a fails, the rest costs 1 % each."""
    if setting.get("p05") == "a":
        return None, "failed"
    helps = 0.2 * (setting.get("p03") == "b") + 0.1 * (setting.get("p07") == "c")
    return math.exp(0.01 * len(setting) - helps), "ok"


def test_finds_the_two_of_twenty_that_help_and_leaves_the_level_that_fails() -> None:
    strategy = create("auto", WIDE, seed=0, options={"patience": 0})
    told = drive(strategy, 45, two_act)
    favourite = strategy.favourite()
    assert favourite in [o.setting for o in told]
    assert favourite is not None
    assert {"p03": "b", "p07": "c"}.items() <= dict(favourite).items()
    # A quarter of all settings have it.
    assert sum(o.setting.get("p05") == "a" for o in told) <= 5


def test_names_nothing_where_nothing_is_faster() -> None:
    strategy = create("auto", WIDE, seed=0, options={"patience": 0})
    assert strategy.favourite() is None
    drive(strategy, 20, lambda setting: (1.02 ** len(setting), "ok"))
    assert strategy.favourite() is None


def test_stops_by_itself_where_nothing_helps() -> None:
    def idle(setting: Setting) -> tuple[float | None, str]:
        return 1.02 ** len(setting), "ok"

    assert 10 <= len(drive(create("auto", WIDE, seed=0), 150, idle)) < 150
