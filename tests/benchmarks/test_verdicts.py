"""What each check calls a failure."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from scipy.stats import binom

from benchmarks import foreign_load, known_effects, null_studies, quantised, racing_grid
from benchmarks.common import Answer, autotune, rejected_share
from benchmarks.known_effects import Effect, time_ratio

FASTER = Effect("faster", "pingpong-4k", "x=1", 0.25)
SLOWER = Effect("slower", "bcast-256k", "x=1", 6.0)


def compared(gain: float | None, low: float = 0.0, high: float = 0.0) -> Answer:
    return Answer(0, {"gain": gain, "gain_ci95": [low, high]}, "", 1.0)


def test_time_ratio_undoes_the_gain() -> None:
    assert time_ratio(3.0) == pytest.approx(0.25)
    assert time_ratio(-0.5) == pytest.approx(2.0)


def test_effect_found() -> None:
    assert known_effects.judge(FASTER, compared(2.8, 1.0, 3.1)) == []
    assert known_effects.judge(SLOWER, compared(-0.8, -0.9, -0.7)) == []


@pytest.mark.parametrize(
    ("effect", "answer"),
    [
        (FASTER, compared(2.8, -0.1, 3.1)),
        (FASTER, compared(0.5, 0.4, 0.6)),
        (FASTER, compared(9.0, 8.0, 9.5)),
        (SLOWER, compared(-0.8, -0.9, 0.1)),
        (SLOWER, compared(5.0, 4.0, 6.0)),
        (SLOWER, compared(None)),
        (FASTER, Answer(1, {}, "machine too busy", 1.0)),
    ],
)
def test_effect_not_found(effect: Effect, answer: Answer) -> None:
    assert known_effects.judge(effect, answer)


def test_false_winners_and_stops_of_a_null_series() -> None:
    most = null_studies.most_false(40)
    assert (most, null_studies.most_false(20)) == (5, 4)
    assert null_studies.judge(Counter(recommended=5, keep_default=35), 40, most) == []
    assert null_studies.judge(Counter(recommended=6, keep_default=34), 40, most)
    assert null_studies.judge(Counter(recommended=1, keep_default=19), 20, 0)
    assert null_studies.judge(Counter(keep_default=39), 40, most)
    assert null_studies.judge(Counter(contradicted=1, keep_default=39), 40, most)


@pytest.mark.parametrize(("hits", "of"), [(0, 40), (3, 40), (40, 40)])
def test_clopper_pearson_leaves_the_tails_it_says(hits: int, of: int) -> None:
    low, high = null_studies.clopper_pearson(hits, of)
    assert low <= hits / of <= high
    if hits:
        assert binom.sf(hits - 1, of, low) == pytest.approx(0.025)
    if hits < of:
        assert binom.cdf(hits, of, high) == pytest.approx(0.025)


BUSY = "autotune: machine too busy: 5 runs in a row were disturbed"


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        (Answer(1, {}, BUSY, 90.0), 0),
        (Answer(1, {}, BUSY, 500.0), 1),
        (Answer(1, {}, "autotune: no mpirun", 1.0), 1),
        (Answer(0, {"status": "keep_default"}, "", 60.0), 1),
        (Answer(0, {"status": "recommended"}, "", 60.0), 2),
    ],
)
def test_continuous_load(answer: Answer, count: int) -> None:
    assert len(foreign_load.judge_continuous(answer)) == count


def test_bursts() -> None:
    assert foreign_load.judge_bursts(compared(2.5, 1.0, 3.0)) == []
    assert foreign_load.judge_bursts(compared(2.5, -0.1, 3.0))
    assert foreign_load.judge_bursts(compared(0.2, 0.1, 0.3))
    assert foreign_load.judge_bursts(Answer(1, {}, BUSY, 90.0))


def test_quantised_needs_the_warning_and_no_winner() -> None:
    warning = "the metric has a resolution of 0.01 s, 7.7% of the run"
    assert quantised.judge(0, "keep_default", [warning], "") == []
    assert quantised.judge(0, "keep_default", ["8 of 8 blocks are ties"], "")
    assert quantised.judge(0, "recommended", [warning], "") == ["a winner was named"]
    assert quantised.judge(1, "none", [warning], BUSY)


def test_grid_has_every_setting_once() -> None:
    every = racing_grid.settings()
    assert len(every) == len({racing_grid.words(setting) for setting in every}) == 24
    assert {} in every
    large = racing_grid.settings(racing_grid.MANY_NULLS)
    assert len({racing_grid.words(setting) for setting in large}) == len(large) == 108


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ({}, "not eager"),
        ({"btl_sm_eager_limit": 2048}, "not eager"),
        ({"btl_sm_eager_limit": 8192}, "eager"),
        ({"osc_rdma_buffer_size": 8192}, "not eager"),
    ],
)
def test_decision(setting: dict[str, Any], expected: str) -> None:
    assert racing_grid.decision(setting) == expected


def test_grid_takes_the_best_median_and_not_the_luckiest_run() -> None:
    assert racing_grid.grid_winner([[3.0, 3.0, 0.1], [2.0, 2.0, 2.0]]) == 1


def test_racing_fails_on_another_decision_or_too_many_runs() -> None:
    eager, small = {"btl_sm_eager_limit": 65536}, {"btl_sm_eager_limit": 1024}
    raced = {"recommended": {"setting": eager}, "status": "recommended"}
    assert racing_grid.judge(raced, {"btl_sm_eager_limit": 8192}, 40, 120) == []
    assert racing_grid.judge(raced, None, 40, 120) == []
    assert len(racing_grid.judge(raced, small, 40, 120)) == 1
    assert len(racing_grid.judge(raced, eager, 41, 120)) == 1
    assert racing_grid.judge(raced, eager, 77, 540, 7.0) == []
    assert len(racing_grid.judge(raced, eager, 78, 540, 7.0)) == 1
    assert len(racing_grid.judge({"recommended": {"setting": {}}}, eager, 60, 120)) == 2


def test_rejected_share_of_searches_and_comparisons() -> None:
    assert rejected_share({"runs": 20, "runs_rejected": 5}) == 0.25
    found = {"search_runs": 30, "confirmation_runs": 10, "runs_rejected": 10}
    assert rejected_share(found) == 0.25
    assert rejected_share({}) == 0.0


def test_a_command_gives_its_exit_code_and_message() -> None:
    answer = autotune("compare", "default", "x=1", "--app", "no-such-app", timeout_s=60)
    assert answer.code == 2
    assert answer.result == {}
    assert "no-such-app" in answer.text
