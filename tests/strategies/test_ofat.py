"""One factor at a time, and the strategies that need another package."""

from __future__ import annotations

import pytest

from autotune.errors import UsageError
from autotune.space import Parameter, Setting, Space
from autotune.strategies import create, find
from autotune.strategies.options import missing_package
from autotune.testing.landscapes import drive
from tests.refusals import refused

SPACE = Space("three", tuple(Parameter(f"p{i}", ("a", "b", "c")) for i in range(3)))


def measure(setting: Setting) -> tuple[float | None, str]:
    """p0=b and p2=c help, p1=a fails."""
    if setting.get("p1") == "a":
        return None, "failed"
    return 1.05 - 0.2 * (setting.get("p0") == "b") - 0.1 * (setting.get("p2") == "c"), "ok"


def test_every_level_alone_then_the_best_together() -> None:
    told = drive(create("ofat", SPACE, seed=0), 60, measure)
    assert [len(o.setting) for o in told[:9]] == [1] * 9
    assert len({o.setting.key for o in told[:9]}) == 9
    assert told[9].setting == Setting({"p0": "b", "p2": "c"})


def test_what_failed_alone_is_not_tried_again_and_it_ends() -> None:
    told = drive(create("ofat", SPACE, seed=0), 60, measure)
    assert sum(o.setting.get("p1") == "a" for o in told) == 1
    assert len(told) < 20


@pytest.mark.parametrize("name", ["gp", "cmaes"])
def test_a_missing_package_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.strategies.options.find_spec", lambda package: None)
    (package,) = find(name).needs
    assert missing_package(find(name).needs) == [package]
    with refused(UsageError, "strategy.missing"):
        create(name, SPACE, seed=0)
