"""The surrogate with effects of levels and of pairs."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.space import Parameter, Setting, Space
from autotune.strategies.codec import Codec
from autotune.strategies.models.additive import Additive, Kernel, Prior

SPACE = Space(
    "six", tuple(Parameter(f"p{i}", tuple(f"w{k}" for k in range(1, 4))) for i in range(4))
)
"""256 settings."""


def _codes(space: Space, *settings: dict[str, str]) -> np.ndarray:
    codec = Codec(space)
    return np.array([codec.encode(Setting(s)) for s in settings], dtype=np.intp)


def test_the_model_knows_the_default_and_adds_effects() -> None:
    codec = Codec(SPACE)
    kernel = Kernel(codec, Prior().correlation)
    seen = _codes(SPACE, {"p0": "w2"}, {"p1": "w1"}, {"p2": "w1"}, {"p3": "w3"})
    model = Additive(kernel, Prior(), seen, np.array([-0.2, -0.1, 0.0, 0.0]))
    asked = _codes(SPACE, {}, {"p0": "w2"}, {"p0": "w2", "p1": "w1"}, {"p2": "w1"})
    mean, deviation = model.predict(asked)
    assert mean[0] == pytest.approx(0, abs=1e-9)
    assert deviation[0] < 1e-5
    assert mean[2] < mean[1] < mean[3]
    np.testing.assert_allclose(mean, model.mean(asked), atol=1e-12)
    # Where something was found, the other levels are believed to matter more.
    assert model.sizes[0] > model.sizes[2]


def test_before_any_run_the_default_is_certain_and_a_change_is_not() -> None:
    codec = Codec(SPACE)
    model = Additive(Kernel(codec, 0.2), Prior(), np.empty((0, 4), dtype=np.intp), np.empty(0))
    _, deviation = model.predict(_codes(SPACE, {}, {"p0": "w1"}, {"p0": "w1", "p1": "w1"}))
    assert deviation[0] < 1e-5 < deviation[1] < deviation[2]


def test_levels_of_a_size_are_alike_when_they_are_near() -> None:
    space = Space("size", (Parameter("size", (1, 2, 4, 8, 16), default=1),))
    kernel = Kernel(Codec(space), 0.0)
    blocks = kernel.blocks
    assert blocks[0].max() == 0  # The default's own effect is none.
    assert blocks[3, 4] > blocks[3, 1]
