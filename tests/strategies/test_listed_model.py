"""The default strategy in spaces whose settings are all listed."""

from __future__ import annotations

import hashlib
import random

import pytest

from autotune.space import Parameter, Setting, Space
from autotune.strategies import SCATTER, Observation, create
from autotune.strategies._joint_model import JointModel
from autotune.strategies._listed_model import ListedModel
from autotune.testing.landscapes import FORCED, MANY, MAPPED, RULED, SMALL, keys

WORDS = tuple(f"w{k}" for k in range(1, 4))
FOUR = Space("four", tuple(Parameter(f"p{i}", WORDS) for i in range(4)))
"""256 settings."""
DRAWN = 12
"""Number of random settings that are told first, so that no two levels are alike."""


def lottery(setting: Setting) -> tuple[float | None, str]:
    """Ratios that are drawn by the setting's key; one setting in twenty fails."""
    drawn = random.Random(setting.key)
    return (None, "failed") if drawn.random() < 0.05 else (drawn.uniform(0.7, 1.3), "ok")


def searched(space: Space, trials: int, idle: str | None) -> list[Observation]:
    """A search that is told of the default's scatter, and later of an inactive parameter."""
    strategy = create("auto", space, seed=7, options={"patience": 0})
    first = create("random", space, seed=1)
    told: list[Observation] = []
    for number in range(trials):
        proposal = (first if number < DRAWN else strategy).ask()
        if proposal is None:
            break
        attrs = {**proposal.attrs, SCATTER: [0.001, 6.0 + number]}
        if idle and number >= DRAWN:
            attrs["inactive"] = [idle]
        told.append(Observation(number, proposal.setting, *lottery(proposal.setting), attrs))
        first.tell(told[-1])
        strategy.tell(told[-1])
    return told


@pytest.mark.parametrize(
    ("space", "trials", "idle", "digest"),
    [
        (FOUR, 170, None, "068fd3969f8cf3ec"),
        (FOUR, 60, "p2", "76323753f8a0980b"),
        (SMALL, 24, None, "16bb054169695e45"),
        (RULED, 30, None, "1804e3a823d5c002"),
        (MAPPED, 24, "map_by", "ef439e41b39e9600"),
        (FORCED, 20, None, "d3126abc89e37752"),
    ],
)
def test_the_proposals_are_those_before_large_spaces_had_another_model(
    space: Space, trials: int, idle: str | None, digest: str
) -> None:
    told = searched(space, trials, idle)
    assert hashlib.sha256("\n".join(keys(told)).encode()).hexdigest()[:16] == digest


def test_the_size_of_the_space_chooses_the_model() -> None:
    small, large = create("auto", FOUR, seed=0), create("auto", MANY, seed=0)
    assert isinstance(small._model, ListedModel)  # type: ignore[attr-defined]
    assert isinstance(large._model, JointModel)  # type: ignore[attr-defined]
