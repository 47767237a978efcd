"""Where the next run goes, what is believed of lucky runs, which settings are confirmed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.stats import finalists, next_run, noise_of, posterior, time_limit

few = settings(max_examples=60)
ratio_lists = st.lists(
    st.lists(st.one_of(st.floats(0.2, 20), st.just(math.inf)), max_size=5), min_size=1, max_size=12
)


def race(data: list[list[float]], draw, noise: float, most: int) -> int:
    """Run the race on ``draw(i)``; the number of runs beyond those in ``data``."""
    for used in range(most):
        i = next_run(data, noise)
        if i is None:
            return used
        data[i].append(draw(i))
    return most


def test_every_setting_gets_a_run_first() -> None:
    data: list[list[float]] = [[0.5], [], [1.0], []]
    assert next_run(data, 0.02) == 1
    data[1].append(1.0)
    assert next_run(data, 0.02) == 3


def test_runs_go_to_the_promising_and_never_to_the_hopeless() -> None:
    rng = np.random.default_rng(71)
    effect = [0.0, -0.10, -0.09, 0.5, 0.02, 1.5]

    def draw(i: int) -> float:
        return math.exp(effect[i] + rng.normal(0, 0.03))

    data = [[draw(i)] for i in range(6)] + [[math.inf]]
    race(data, draw, 0.03, 30)
    counts = [len(d) for d in data]
    assert min(counts[1], counts[2]) > 1
    assert [counts[3], counts[5], counts[6]] == [1, 1, 1]


def test_nothing_to_decide_ends_the_race() -> None:
    assert next_run([], 0.02) is None
    assert next_run([[1.0], [1.001], [1.4]], 0.01) is None
    assert next_run([[0.6], [1.0], [1.4]], 0.01) is None
    assert next_run([[math.inf], [math.inf]], 0.01) is None


@few
@given(ratio_lists, st.floats(0.001, 0.3))
def test_the_race_is_bounded(data, noise: float) -> None:
    used = race(data, lambda i: 0.9, noise, 200)
    assert used < 200
    assert all(len(d) <= 6 for d in data)


@few
@given(ratio_lists, st.floats(0.001, 0.3))
def test_beliefs_are_shrunk_towards_the_default(data, noise: float) -> None:
    seen = posterior(data, noise)
    for ratios, mean, sd, chance in zip(data, seen.mean, seen.sd, seen.gain_chance, strict=True):
        assert 0 <= chance <= 1
        if math.inf in ratios:
            assert (mean, sd) == (math.inf, 0)
        elif ratios:
            assert abs(mean) <= abs(math.log(np.median(ratios))) + 1e-12
            assert sd >= 0


def test_the_luckiest_of_many_equal_settings_is_not_believed() -> None:
    rng = np.random.default_rng(72)
    believed, seen = [], []
    for _ in range(40):
        ratios = np.exp(rng.normal(0, 0.05, 200))
        seen.append(1 / ratios.min() - 1)
        believed.append(posterior([[r] for r in ratios], 0.05).gain.max())
    assert np.mean(seen) > 0.12
    assert np.mean(believed) < 0.03


def test_a_lone_true_gain_among_many_is_believed() -> None:
    ratios = np.exp(np.random.default_rng(73).normal(0, 0.01, 199))
    seen = posterior([[0.9], *([r] for r in ratios)], 0.01)
    assert seen.gain[0] == pytest.approx(1 / 0.9 - 1, abs=0.02)


def test_more_runs_are_believed_more() -> None:
    others = [[r] for r in np.exp(np.random.default_rng(74).normal(0, 0.05, 60))]
    gains = [posterior([[0.9] * n, *others], 0.05).gain[0] for n in (1, 3, 6)]
    assert gains == sorted(gains)
    assert gains[0] < gains[2]


def test_finalists_are_few_ordered_and_promising() -> None:
    rng = np.random.default_rng(75)
    others = [[r] for r in np.exp(rng.normal(0, 0.01, 50))]
    data = [[0.90, 0.91, 0.89], [0.89, 0.90, 0.90], [0.80] * 2, [math.inf], [], *others]
    assert finalists(data, 0.01) == [2]
    close = [[0.90, 0.91, 0.89], [0.89, 0.90, 0.90], [0.895] * 2, [0.9] * 2, *others]
    assert len(finalists(close, 0.01)) == 3
    assert len(finalists(close, 0.01, most=2)) == 2
    assert set(finalists(close, 0.01)) <= {0, 1, 2, 3}


def test_no_finalist_where_nothing_looks_like_a_gain() -> None:
    assert finalists([], 0.01) == []
    assert finalists([[]], 0.01) == []
    assert finalists([[1.0], [1.01], [0.999], [1.3], [math.inf]], 0.005) == []


def test_racing_chooses_as_well_as_a_grid_in_a_third_of_its_runs() -> None:
    rng, regret_grid, regret_race, runs = np.random.default_rng(76), [], [], 0
    for _ in range(25):
        effect = np.where(rng.random(60) < 0.2, -rng.uniform(0.01, 0.15, 60), 0.0)
        medians = np.median(effect[:, None] + rng.normal(0, 0.05, (60, 5)), axis=1)
        data = [[math.exp(e + rng.normal(0, 0.05))] for e in effect]
        used = race(data, lambda i, e=effect: math.exp(e[i] + rng.normal(0, 0.05)), 0.05, 40)
        runs += 60 + used
        pick = int(np.argmin(posterior(data, 0.05).mean))
        regret_grid.append(effect[np.argmin(medians)] - effect.min())
        regret_race.append(effect[pick] - effect.min())
    assert runs * 3 <= 25 * 300
    assert np.mean(regret_race) <= np.mean(regret_grid) + 0.005


def test_noise_of_the_default() -> None:
    ratios = np.exp(np.random.default_rng(77).normal(0, 0.04, 4000))
    assert noise_of(ratios) == pytest.approx(0.04, rel=0.06)
    assert noise_of([1.0, 1.0, 1.0]) > 0


def test_time_limit_follows_the_incumbent_but_leaves_the_start_up() -> None:
    assert time_limit(2.0) == pytest.approx(6.0)
    assert time_limit(2.0, 0.5, overhead_s=0.4) == pytest.approx(3.4)
    assert time_limit(2.0, 1.7, factor=2) == pytest.approx(4.0)
