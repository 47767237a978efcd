"""The default strategy in spaces whose settings are all listed."""

from __future__ import annotations

from autotune.space import Parameter, Space
from autotune.strategies import create
from autotune.strategies.models.joint_model import JointModel
from autotune.strategies.models.listed_model import ListedModel
from autotune.testing.landscapes import MANY

WORDS = tuple(f"w{k}" for k in range(1, 4))
FOUR = Space("four", tuple(Parameter(f"p{i}", WORDS) for i in range(4)))
"""256 settings."""


def test_the_size_of_the_space_chooses_the_model() -> None:
    small, large = create("auto", FOUR, seed=0), create("auto", MANY, seed=0)
    assert isinstance(small._model.adding, ListedModel)  # type: ignore[attr-defined]
    assert isinstance(large._model.adding, JointModel)  # type: ignore[attr-defined]
