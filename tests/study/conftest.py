"""A small space and a strategy that proposes what it is told: the study itself is tested."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from autotune.space import Parameter, Setting, Space
from autotune.strategies import Proposal
from autotune.study.proof import Blocks
from autotune.study.simulation import SimulatedEvaluator


def ensure(blocks: Blocks, count: int) -> None:
    """Measure until ``count`` blocks have the reference and every setting."""
    for number in range(count):
        blocks.ensure_block(number, blocks.settings)


class ListStrategy:
    """Proposes the given settings in order, whatever it is told."""

    repeats = True

    def __init__(self, settings: Sequence[Setting]) -> None:
        self.settings = list(settings)
        self.told: list[Any] = []

    def restore(self, observations: Sequence[Any]) -> None:
        self.told.extend(observations)

    def add_running(self, observation: Any) -> None:
        """A list has no use for it."""

    def favourite(self) -> Setting | None:
        """A list believes nothing."""
        return None

    def ask(self) -> Any:
        done = len(self.told)
        if done >= len(self.settings):
            return None
        return Proposal(self.settings[done])

    def tell(self, observation: Any) -> None:
        self.told.append(observation)


def parameter(name: str, *levels: int, default: int | None = None) -> Parameter:
    return Parameter(name=name, levels=levels, target="mca", default=default)


@pytest.fixture
def space() -> Space:
    return Space(
        "small",
        (
            parameter("eager", 1, 2, 4, 8, default=2),
            parameter("yield_", 0, 1, default=0),
            parameter("links", 1, 2, 3, 4),
        ),
    )


def evaluator(model: Any, seed: int = 0, **more: Any) -> SimulatedEvaluator:
    return SimulatedEvaluator(model, np.random.default_rng(seed), **more)
