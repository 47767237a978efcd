"""The contract of strategies, on a replayed grid: every registered one must keep it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autotune.datasets import Landscape
from autotune.space import DEFAULT, Setting
from autotune.strategies import Strategy, create, find, names
from autotune.strategies.options import missing_package
from autotune.testing.landscapes import Measure, drive, keys
from tests.datasets.conftest import make, planted


@pytest.fixture(scope="module")
def land(tmp_path_factory: pytest.TempPathFactory) -> Landscape:
    folder: Path = tmp_path_factory.mktemp("replay") / "grid"
    return Landscape(make(folder, {"planted": planted}), "planted")


def answers(land: Landscape, seed: int = 0) -> Measure:
    """A measure for the driver: the answer to a setting depends on it and the seed alone."""

    def measure(setting: Setting) -> tuple[float | None, str]:
        draw = land.draw(
            setting, np.random.default_rng([seed, len(setting.key), *map(ord, setting.key)])
        )
        return (None if draw.state == "failed" else draw.ratio), draw.state

    return measure


@pytest.fixture(params=names())
def name(request: pytest.FixtureRequest) -> str:
    found = str(request.param)
    if absent := missing_package(find(found).needs):
        short = found.rpartition(":")[2]
        pytest.skip(f"strategy {short} needs {', '.join(absent)}, which is not installed")
    return found


def make_strategy(name: str, land: Landscape, seed: int = 0) -> Strategy:
    options = {"patience": 0} if "patience" in find(name).options else {}
    return create(name, land.space, seed=seed, options=options)


def test_keeps_the_rules_and_asks_nothing_twice(name: str, land: Landscape) -> None:
    told = drive(make_strategy(name, land), 60, answers(land))
    assert len(told) >= 10
    assert len(set(keys(told))) == len(told)
    assert DEFAULT.key not in keys(told)
    for observation in told:
        assert land.space.violations(observation.setting) == []
        assert land.effective(observation.setting) in land.settings


@pytest.mark.parametrize("killed", [1, 7])
def test_goes_on_the_same_way_after_a_kill(name: str, killed: int, land: Landscape) -> None:
    whole = drive(make_strategy(name, land, 3), killed + 5, answers(land))
    again = make_strategy(name, land, 3)
    again.restore(whole[:killed])
    rest = drive(again, 5, answers(land), first=killed)
    assert keys(rest) == keys(whole[killed:])
