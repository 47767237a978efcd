"""The model-guided default strategy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from autotune.space import Parameter, Setting, Space
from autotune.strategies import SCATTER, UNUSED, Observation, create
from autotune.strategies.candidates import Climb, listing
from autotune.strategies.codec import Codec
from autotune.testing.landscapes import MANY, SMALL, Measure, drive, fine

SPACE = Space(
    "six", tuple(Parameter(f"p{i}", tuple(f"w{k}" for k in range(1, 4))) for i in range(4))
)
"""256 settings."""


def two_matter(setting: Setting) -> tuple[float | None, str]:
    """p0=w2 and p1=w1 help, p2=w3 fails, the rest costs 1 % each."""
    if setting.get("p2") == "w3":
        return None, "failed"
    helps = 0.2 * (setting.get("p0") == "w2") + 0.1 * (setting.get("p1") == "w1")
    return math.exp(0.01 * len(setting) - helps), "ok"


def test_finds_the_two_levels_that_help_in_few_runs() -> None:
    for seed in range(3):
        told = drive(create("auto", SPACE, seed=seed), 25, two_matter)
        best = min(told, key=lambda o: o.fitness)
        assert {"p0": "w2", "p1": "w1"}.items() <= dict(best.setting).items()


def test_leaves_a_level_that_fails() -> None:
    options = {"patience": 0}
    told = drive(create("auto", SPACE, seed=1, options=options), 60, two_matter)
    # A quarter of all settings have it.
    assert sum(o.setting.get("p2") == "w3" for o in told) <= 6


def test_stops_by_itself_where_nothing_helps() -> None:
    def idle(setting: Setting) -> tuple[float | None, str]:
        return 1.02 ** len(setting), "ok"

    told = drive(create("auto", SPACE, seed=0), 255, idle)
    assert 10 <= len(told) < 100
    patient = create("auto", SPACE, seed=0, options={"patience": 0})
    assert len(drive(patient, 120, idle)) == 120


def test_of_many_parameters_each_is_tried_early() -> None:
    wide = Space("wide", tuple(Parameter(f"p{i:02d}", (1, 2, 3)) for i in range(20)))
    told = drive(create("auto", wide, seed=4), 10, lambda setting: (1.0, "ok"))
    assert {name for o in told for name in o.setting} == set(wide.names)


def test_a_whole_search_of_one_setting_counts_it_once() -> None:
    strategy = create("auto", SMALL, seed=0)
    setting = Setting({"flag": 1})
    strategy.tell(Observation(0, setting, 0.9))
    assert not strategy.is_new(setting)
    assert strategy.ask() != setting


class _Near:
    """An acquisition that grows towards one setting."""

    def __init__(self, codec: Codec, good: list[int]) -> None:
        self._sizes, self._good = codec.sizes.tolist(), good

    def values(self, codes: np.ndarray) -> np.ndarray:
        return np.exp(-np.abs(codes - np.array(self._good)).sum(axis=1).astype(float))

    def changes(self, codes: tuple[int, ...]) -> np.ndarray:
        changed = [
            (*codes[:place], level, *codes[place + 1 :])
            for place, size in enumerate(self._sizes)
            for level in range(size)
        ]
        return self.values(np.array(changed))


def test_a_small_space_is_listed_and_a_large_one_climbed() -> None:
    every = listing(SPACE, Codec(SPACE))
    assert every is not None
    assert len(every.settings()) == 256
    large = Codec(MANY)
    assert listing(MANY, large) is None
    climb = Climb(large)
    count = len(large.sizes)
    near, start = _Near(large, [1] * count), (0,) * count
    found = climb.candidates([start], near, lambda codes: True)
    for codes in found:
        assert large.is_canonical(codes)
    assert max(sum(c == 1 for c in codes) for codes in found) >= 8
    first = found[0]
    again = climb.candidates([start], near, lambda codes: codes != first)
    assert again
    assert first not in again


def test_a_climb_leaves_parameters_alone_that_do_nothing() -> None:
    codec = Codec(MANY)
    codec.leave_out({UNUSED: [codec.names[0]]}, Setting({}))
    count = len(codec.sizes)
    found = Climb(codec).candidates([(0,) * count], _Near(codec, [1] * count), lambda codes: True)
    assert found
    assert all(codes[0] == 0 for codes in found)


def test_changes_more_parameters_at_once_where_changes_are_cheap() -> None:
    space = Space("wide", tuple(Parameter(f"p{i:02d}", ("a", "b")) for i in range(16)))

    def cheap(setting: Setting) -> tuple[float | None, str]:
        return 1.001 ** len(setting), "ok"

    def dear(setting: Setting) -> tuple[float | None, str]:
        return 1.06 ** len(setting), "ok"

    def changed(measure: Measure) -> float:
        told = drive(create("auto", space, seed=2, options={"patience": 0}), 15, measure)
        return float(np.mean([len(o.setting) for o in told[8:]]))

    assert changed(cheap) > 2 * changed(dear)


def test_asks_the_same_after_the_same_history() -> None:
    told = drive(create("auto", MANY, seed=5), 14, fine)
    again = create("auto", MANY, seed=5)
    again.restore(told[:13])
    proposal = again.ask()
    assert proposal is not None
    assert proposal.setting == told[13].setting


def test_where_the_default_scatters_less_is_believed_and_more_is_tried() -> None:
    noise = np.random.default_rng(0).normal(0, 0.15, 400)

    def looked_at(scatter: float) -> tuple[int, float]:
        strategy = create("auto", SPACE, seed=3)
        for number in range(200):
            proposal = strategy.ask()
            if proposal is None:
                break
            attrs = {**proposal.attrs, SCATTER: [scatter**2, 8]}
            ratio = math.exp(float(noise[number]))
            strategy.tell(Observation(number, proposal.setting, ratio, "ok", attrs))
        _, estimates = strategy._model.ranking()  # type: ignore[attr-defined]
        return strategy.ordinal, float(-estimates[0])

    trusting, careful = looked_at(0.01), looked_at(0.15)
    assert careful[0] > trusting[0]
    assert careful[1] < trusting[1]


@pytest.mark.parametrize("count", [2, 20], ids=["listed", "climbed"])
def test_tells_settings_apart_that_are_all_many_times_as_fast(count: int) -> None:
    """The default is slow here, as a program's first guess may be; 20 % between two still count."""
    names = [f"p{i:02d}" for i in range(count)]
    space = Space("slow", tuple(Parameter(name, (1, 2, 3, 4)) for name in names))
    strategy = create("auto", space, seed=1, options={"patience": 0})
    faster = {1: 0.2, 2: 0.24, 3: 0.25, 4: 0.9}

    def measure(setting: Setting) -> float:
        return faster[int(setting["p00"])] if "p00" in setting else 1.0

    for number, value in enumerate((1, 2, 3, 4)):
        setting = Setting({"p00": value})
        strategy.tell(Observation(number, setting, measure(setting)))
    assert strategy.favourite() == Setting({"p00": 1})
    proposed = strategy.ask()
    assert proposed is not None
    # What differs from the best one is tried beside its level, not beside the others.
    assert proposed.setting["p00"] == 1


def test_never_names_a_setting_that_failed() -> None:
    """Both changes make the program five times as fast, and together they break it."""
    space = Space("brittle", tuple(Parameter(name, (1, 2)) for name in "abc"))
    strategy = create("auto", space, seed=1)
    tried = [("a=1", 0.2), ("b=1", 0.21), ("a=1,c=1", 0.2), ("b=1,c=1", 0.2), ("a=1,b=1", math.inf)]
    for number, (text, ratio) in enumerate(tried):
        strategy.tell(Observation(number, Setting.parse(text), ratio))
    named = strategy.favourite()
    assert named is not None
    assert named != Setting.parse("a=1,b=1")
