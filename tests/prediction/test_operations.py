"""Predictions name no algorithm that is wrong for operations of which nothing is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.api.predict import predict, warm_start
from autotune.prediction import find_model
from autotune.space.commutativity import commutative_values, for_any_operation
from autotune.targets.request import TargetRequest
from autotune.targets.resolve import resolve
from autotune.targets.target import Surroundings
from runner.mpi.library import Library
from runner.trace import load_features

TRACED = Path(__file__).parents[2] / "datasets/programs-report-node/features/sort-node-4.json"


def test_the_shipped_model_knows_such_settings() -> None:
    """So a filter is needed."""
    assert any(map(commutative_values, find_model().settings))


@pytest.mark.mpi
def test_they_are_named_only_if_all_operations_are_said_to_commute(open_mpi: Library) -> None:
    stated = predict(TRACED, mpi=open_mpi.launcher, commutative_only=True).answer
    assert commutative_values(stated.best or {}), "expected a program for which they matter"
    named = predict(TRACED, mpi=open_mpi.launcher).answer
    assert not commutative_values(named.best or {})
    assert not commutative_values(named.setting)


@pytest.mark.mpi
def test_a_warm_start_in_the_space_that_is_left(open_mpi: Library) -> None:
    asked = TargetRequest(program=("true",), ranks=4, mpi=open_mpi.launcher)
    target = resolve(asked, lambda library: Surroundings(), lambda words: None)
    features = load_features(TRACED)
    found = warm_start(features, for_any_operation(target.space()), target)
    assert not any(map(commutative_values, found))
