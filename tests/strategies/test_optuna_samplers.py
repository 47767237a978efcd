"""Optuna's samplers as strategies: their packages, their options, and what they store."""

from __future__ import annotations

import json

import pytest

from autotune.errors import UsageError
from autotune.strategies import create, find
from autotune.strategies.options import missing_package
from autotune.testing.landscapes import MANY, drive, fine, keys
from tests.case_table import case_table


@pytest.mark.parametrize("name", ["optuna:GPSampler", "optuna:CmaEsSampler"])
def test_a_missing_package_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.strategies.options.find_spec", lambda package: None)
    (package,) = find(name).needs
    assert missing_package(find(name).needs) == [package]
    with pytest.raises(UsageError) as refused:
        create(name, MANY, seed=0)
    assert refused.value.code == "strategy.missing"
    assert package in str(refused.value)


def test_a_sampler_that_is_not_offered_is_refused() -> None:
    with pytest.raises(UsageError) as refused:
        create("optuna:BruteForceSampler", MANY, seed=0)
    assert refused.value.code == "strategy.unknown"


@case_table(
    ("name", "options"),
    [
        ("optuna:TPESampler", {"n_startup_trials": 1}),
        ("optuna:TPESampler", {"n_startup_trials": 1, "multivariate": "no"}),
        ("optuna:NSGAIISampler", {"population_size": 4}),
        ("optuna:CmaEsSampler", {"popsize": 4}),
    ],
)
def test_an_option_reaches_the_sampler(name: str, options: dict[str, int | str]) -> None:
    plain, other = create(name, MANY, seed=1), create(name, MANY, seed=1, options=options)
    assert keys(drive(plain, 30, fine)) != keys(drive(other, 30, fine))


def test_the_state_of_cma_es_is_computed_anew_and_stored_nowhere() -> None:
    told = drive(create("optuna:CmaEsSampler", MANY, seed=1, options={"popsize": 4}), 20, fine)
    stored = [json.loads(json.dumps(o.attrs))["optuna"] for o in told]
    assert [sorted(one) for one in stored] == [["cma:generation"]] * 20
    assert stored[-1]["cma:generation"] == 4
