"""Disturbances that show in the runs are said: carry-over, position, spells of a setting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from autotune.measurement.run_history import DEFAULT_KEY
from autotune.space import DEFAULT, Setting
from autotune.study.proof import Blocks
from autotune.study.study_warnings import carry_over_notes, position_note, search_note, spells_note
from tests.study.conftest import ensure, evaluator

FAST = Setting({"eager": 8})


def blocks_of(
    model: Callable[[Setting, np.random.Generator, Any], float], seed: int, count: int = 24
) -> Blocks:
    simulated = evaluator(lambda setting, rng: model(setting, rng, simulated), seed)
    blocks = Blocks(simulated, "confirm:r1", [FAST], seed, None)
    ensure(blocks, count)
    return blocks


def noise(setting: Setting, rng: np.random.Generator, simulated: Any) -> float:
    return float(rng.lognormal(0, 0.02))


def notes(blocks: Blocks) -> list[str]:
    found = [position_note(blocks, FAST), spells_note(blocks, FAST)]
    history = blocks.evaluator.history
    found += carry_over_notes(history, [DEFAULT_KEY, FAST.key])
    return [note.code for note in found if note is not None]


def test_noise_alone_is_no_disturbance() -> None:
    assert sum(len(notes(blocks_of(noise, seed))) for seed in range(60)) <= 3


def test_heat_of_a_setting_is_said_of_the_default() -> None:
    def heats(setting: Setting, rng: np.random.Generator, simulated: Any) -> float:
        hot = simulated.history.previous == FAST.key
        return noise(setting, rng, simulated) * (1.15 if hot else 1.0)

    note = next(carry_over_notes(blocks_of(heats, 1, 60).evaluator.history, [DEFAULT_KEY]))
    assert note.code == "runs.carry_over"
    assert note.data["setting"] == DEFAULT.key
    assert note.data["longer"] == pytest.approx(0.15, abs=0.04)


def test_a_slow_second_place_is_said() -> None:
    def second(setting: Setting, rng: np.random.Generator, simulated: Any) -> float:
        return noise(setting, rng, simulated) * (1.1 if len(simulated.history.entries) % 2 else 1)

    note = position_note(blocks_of(second, 2), FAST)
    assert note is not None
    assert note.code == "runs.position"
    assert note.data["longer"] == pytest.approx(0.1, abs=0.03)


def test_spells_of_a_setting_are_said_and_those_of_the_machine_are_not() -> None:
    def own(setting: Setting, rng: np.random.Generator, simulated: Any) -> float:
        slow = setting == FAST and len(simulated.history.entries) // 16 % 2
        return noise(setting, rng, simulated) * (1.2 if slow else 1.0)

    def machine(setting: Setting, rng: np.random.Generator, simulated: Any) -> float:
        slow = len(simulated.history.entries) // 16 % 2
        return noise(setting, rng, simulated) * (1.2 if slow else 1.0)

    assert spells_note(blocks_of(own, 3), FAST) is not None
    assert spells_note(blocks_of(machine, 3), FAST) is None


@pytest.mark.parametrize("heat", [0.0, 0.2])
def test_the_search_says_that_settings_slow_the_next_run(heat: float) -> None:
    """Sixty settings, each once, with the default after every eighth run."""
    simulated = evaluator(
        lambda setting, rng: (
            float(rng.lognormal(0, 0.05))
            * (1 + heat * (simulated.history.previous not in (None, DEFAULT_KEY)))
        ),
        11,
    )
    for number in range(60):
        if number % 8 == 0:
            simulated.run(DEFAULT, "default")
        simulated.run(Setting({"p": number}), "search")
    note = search_note(simulated.history)
    assert (note is not None) == bool(heat)
    if note is not None:
        assert note.code == "runs.carry_over"
        assert note.data["longer"] == pytest.approx(heat, abs=0.08)
