"""Models: what they learn from a family whose answer is known, and what they must not learn."""

from __future__ import annotations

import dataclasses
import json
import math
from functools import cache

import numpy as np
import pytest

from autotune.prediction import (
    CHOICES,
    KINDS,
    THESIS,
    TrainingSet,
    evaluate,
    train,
)
from autotune.prediction.back_propagation import drawn_weights, gradients, outputs
from autotune.prediction.confidence import SURE, Checks
from autotune.prediction.evaluation import judge_random, score_prediction
from autotune.prediction.predictor import Predictor, find_kind
from autotune.prediction.scorer import model_values
from autotune.prediction.training import by_program, cross_validate
from autotune.prediction.values import ValueCode, near_scores
from autotune.space import DEFAULT, Setting
from tests.case_table import case_table
from tests.prediction.family import EAGER, LIMIT, SETTINGS, example, family, traced, truth

FAMILY = family()
NULL = family(null=True)


@cache
def learned(kind: str, every: int = 1, null: bool = False) -> Predictor:
    """A predictor of every such program of the family; trained once."""
    return train(kind, (NULL if null else FAMILY).examples[::every]).predictor


@case_table("kind", ["knn", "knn-thesis"])
@case_table("size", [150.0, 1800.0, 14000.0])
def test_a_limit_that_follows_from_the_message_size_is_learned(kind: str, size: float) -> None:
    named = learned(kind).name(model_values(traced(size)), SETTINGS)
    assert named.setting.get(LIMIT) == min(e for e in EAGER if e >= size)
    assert named.setting.get("bind_to") != "core"


@pytest.mark.slow
def test_the_perceptron_learns_which_end_a_program_is_at() -> None:
    predictor = learned("mlp", 2)
    for size in (150.0, 14000.0):
        named = predictor.name(model_values(traced(size)), SETTINGS)
        assert truth(size, named.setting) < 0.8


def test_the_interval_holds_the_true_gain() -> None:
    named = learned("knn").name(model_values(traced(150.0)), SETTINGS)
    assert named.interval is not None
    assert named.gain is not None
    low, high = named.interval
    assert low < 1 / truth(150.0, named.setting) - 1 < high
    assert low < named.gain < high


def test_one_neighbour_on_its_own_row_gives_its_own_setting() -> None:
    model = find_kind("knn").fit(FAMILY.examples, {"k": 1, "features": "thesis"}, {})
    for e in FAMILY.examples:
        scores = model.scores(model_values(e.features), e.settings)
        assert int(scores.argmin()) == int(e.logs.argmin())


def test_three_identical_neighbours_give_their_setting() -> None:
    twins = [example(f"a{i}", 150.0) for i in range(3)] + [example("b", 20000.0)]
    model = find_kind("knn-thesis").fit(twins, {"k": 3}, {})
    scores = model.scores(model_values(traced(150.0)), SETTINGS)
    assert SETTINGS[int(scores.argmin())] == twins[0].settings[int(twins[0].logs.argmin())]


def test_the_thesis_network_has_its_form_and_learns() -> None:
    model = find_kind("mlp-thesis").fit(FAMILY.examples, {"rate": 0.25, "momentum": 0.8}, {})
    layers = model.to_json()["layers"]
    shapes = [np.array(w).shape for w in layers["weights"]]
    assert shapes == [(19, 16), (16, 10), (10, 2)]
    assert layers["activations"] == ["tanh", "logistic", "tanh"]
    for size, limit in ((140.0, 512), (16000.0, 32768)):
        scores = model.scores(model_values(traced(size)), SETTINGS)
        assert SETTINGS[int(scores.argmin())].get(LIMIT) == limit


def test_gradients_are_those_of_the_error() -> None:
    rng = np.random.default_rng(3)
    names = ("tanh", "logistic", "identity")
    start = drawn_weights((3, 4, 3, 2), rng)
    inputs, targets = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))

    def error() -> float:
        return float(((outputs(start, names, inputs)[-1] - targets) ** 2).sum() / 2 / 5)

    slopes = gradients(start, names, inputs, targets)
    for arrays, own in zip(start, slopes, strict=True):
        for array, slope in zip(arrays, own, strict=True):
            place = (0,) * array.ndim
            before = array[place]
            array[place] = before + 1e-5
            above = error()
            array[place] = before - 1e-5
            below = error()
            array[place] = before
            assert slope[place] == pytest.approx((above - below) / 2e-5, abs=1e-8)


def test_the_models_of_the_thesis_learn_the_fastest_run_of_a_null_cell() -> None:
    lucky = dataclasses.replace(FAMILY.examples[0], null=True, opub=1.0)
    assert lucky.ratios.min() == 1.0
    assert lucky.fastest == FAMILY.examples[0].fastest > 0
    model = find_kind("knn-thesis").fit([lucky] * 3, {"k": 3}, {})
    scores = model.scores(model_values(lucky.features), SETTINGS)
    assert int(scores.argmin()) == lucky.fastest


def test_values_of_the_default_name_the_default() -> None:
    code = ValueCode.of(SETTINGS, {LIMIT: 4096})
    scores = near_scores(code, code.encode(DEFAULT), SETTINGS, -0.3)
    assert scores[0] == 0.0
    assert scores[1:].min() > 0.0
    wanted = SETTINGS[3]
    scores = near_scores(code, code.encode(wanted), SETTINGS, -0.3)
    assert int(scores.argmin()) == 3
    assert (scores[0], scores[3]) == (0.0, pytest.approx(-0.3))


@pytest.mark.parametrize("kind", CHOICES)
def test_where_nothing_helps_the_default_is_named(kind: str) -> None:
    predictor = learned(kind, 4, null=True)
    for e in NULL.examples[::4]:
        assert predictor.name(model_values(e.features), SETTINGS).setting == DEFAULT


@pytest.mark.parametrize("kind", CHOICES)
def test_a_program_unlike_all_others_gets_the_default_and_is_called_far(kind: str) -> None:
    named = learned(kind, 3).name(model_values(traced(1e9, ranks=4000)), SETTINGS)
    assert named.far
    assert named.setting == DEFAULT


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_data_give_the_same_model(kind: str) -> None:
    again = train(kind, FAMILY.examples[::3]).predictor
    assert json.dumps(again.to_json()) == json.dumps(learned(kind, 3).to_json())


def test_no_row_of_a_program_is_in_its_own_training(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = find_kind("knn")
    seen = []
    fit = kind.fit

    def watched(examples, options, defaults):  # type: ignore[no-untyped-def]
        seen.append({e.app for e in examples})
        return fit(examples, options, defaults)

    monkeypatch.setattr(kind, "fit", watched)
    several = [*FAMILY.examples, example("app00", 120.0, ranks=2)]
    cross_validate(kind, {"k": 1, "features": "thesis"}, several, {}, by_program)
    apps = {e.app for e in several}
    assert sorted(*zip(*(apps - s for s in seen), strict=True)) == sorted(apps)


def checks(*rows: tuple[float, float, bool]) -> Checks:
    columns = np.array([(p, a, 1.0, float(s), 0.0, n) for n, (p, a, s) in enumerate(rows)]).T
    return Checks(*columns)


def test_the_bar_lies_above_gains_that_were_promised_and_not_kept() -> None:
    seen = checks((-0.05, 0.10, True), (-0.06, 0.08, True), (-0.30, -0.28, False))
    assert 0.06 < seen.threshold() <= 0.30


def test_nothing_is_ever_named_where_naming_only_did_harm() -> None:
    assert checks((-0.2, 0.1, True), (-0.3, 0.2, True)).threshold() == math.inf


def test_naming_where_the_default_is_right_costs_something() -> None:
    """Of a harmless setting on many null cells and one small gain, nothing is left."""
    columns = np.array(
        [(-0.1, 0.0, 1.0, 0.0, 1.0, n) for n in range(5)] + [(-0.1, -0.05, 1, 0, 0, 5)]
    )
    assert Checks(*columns.T).threshold() == math.inf
    columns[:, 4] = 0.0
    assert Checks(*columns.T).threshold() < math.inf


def test_cells_of_one_program_are_one_witness() -> None:
    seen = Checks(
        predicted=np.full(6, -0.2),
        actual=np.array([-0.1, -0.1, -0.1, -0.2, -0.2, -0.3]),
        distance=np.arange(6.0),
        slower=np.zeros(6),
        null=np.zeros(6),
        program=np.array([0, 0, 0, 1, 2, 3]),
    )
    assert seen.residuals(0.0) == pytest.approx([0.1, 0.0, 0.0, -0.1])
    assert seen.reach() == pytest.approx(4.75)


def test_small_promises_are_not_named_even_if_they_were_kept() -> None:
    assert checks(*[(-0.01, -0.01, False)] * 5).threshold() >= SURE


def test_scores_of_settings_by_their_definitions() -> None:
    e = example("a", 150.0, noise=0.0)
    best = int(e.logs.argmin())
    verdict = score_prediction(e, best)
    assert verdict.performance == pytest.approx(1.0)
    assert verdict.share == pytest.approx(1.0)
    assert score_prediction(e, 0).share == 0.0
    assert score_prediction(e, 0).performance == pytest.approx(e.opub)
    bound = e.settings.index(Setting({"bind_to": "core"}))
    assert score_prediction(e, bound).slower
    assert not score_prediction(e, best).slower
    drawn = [score_prediction(e, i).performance for i in range(1, len(e.settings))]
    assert judge_random(e).performance == pytest.approx(np.mean(drawn))


def test_a_setting_that_fails_has_performance_zero() -> None:
    e = example("a", 150.0)
    broken = dataclasses.replace(e, runs=(e.runs[0], (math.inf, math.inf), *e.runs[2:]))
    assert score_prediction(broken, 1).performance == 0.0
    assert score_prediction(broken, 1).slower


def test_evaluation_beats_the_default_and_the_best_single_setting() -> None:
    found = {r.method: r for r in evaluate(FAMILY, kinds=("knn",)).rows}
    assert found["knn"].performance > 0.98
    assert found["knn"].slower == 0
    for name in ("default", "random", "best single"):
        assert found["knn"].performance > found[name].performance + 0.1
    assert found["default"].share == 0.0


def test_evaluation_counts_what_is_named_on_null_cells() -> None:
    null = TrainingSet(NULL.examples[::2])
    found = {r.method: r for r in evaluate(null, kinds=("knn",)).rows}
    assert found["knn"].false == found["default"].false == 0
    assert found["random"].false == len(null.examples)
    assert found["knn"].share is None


@pytest.mark.parametrize("left_out", ["ranks", "cell"])
def test_leaving_less_than_a_program_out_keeps_it_in_training(left_out: str) -> None:
    both = TrainingSet(
        tuple(
            example(f"p{i}", s, ranks=r)
            for i, s in enumerate((150.0, 1500.0, 15000.0))
            for r in (2, 4)
        )
    )
    found = {r.method: r for r in evaluate(both, left_out, ("knn-thesis",)).rows}
    assert len(found["knn-thesis"].verdicts) == 6


def test_values_average_on_their_scale_and_snap_to_levels() -> None:
    code = ValueCode.of(SETTINGS, {LIMIT: 4096})
    wanted = code.average([Setting({LIMIT: 512}), Setting({LIMIT: 512}), Setting({LIMIT: 8192})])
    place = dict(zip(code.names, wanted, strict=True))[LIMIT]
    # log2 of 512, 512 and 8192 is 10.3 in the mean: 512 (9) is nearer than the default, 4096 (12).
    assert code.levels[LIMIT][code.places[LIMIT].index(place)] == 512
    words = code.average([Setting({"bind_to": "core"}), Setting({"bind_to": "core"}), DEFAULT])
    assert (
        dict(zip(code.names, words, strict=True))["bind_to"]
        == code.encode(Setting({"bind_to": "core"}))[code.names.index("bind_to")]
    )


def test_every_kind_says_what_it_is() -> None:
    assert set(THESIS.values()) < set(KINDS)
    assert all(KINDS[k].summary for k in KINDS)


def test_a_network_is_fitted_without_threads_of_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    """For such small matrices waking them costs more than the arithmetic."""
    from sklearn.neural_network import MLPRegressor
    from threadpoolctl import threadpool_info, threadpool_limits

    threads = []
    fit = MLPRegressor.fit

    def watched(self: MLPRegressor, *data: object) -> MLPRegressor:
        threads.extend(p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas")
        return fit(self, *data)

    monkeypatch.setattr(MLPRegressor, "fit", watched)
    with threadpool_limits(limits=2, user_api="blas"):
        find_kind("mlp").fit(FAMILY.examples, {"alpha": 0.3, "features": "thesis"}, {})
    assert threads
    assert set(threads) == {1}
