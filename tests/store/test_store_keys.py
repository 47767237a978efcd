"""What is part of a study's identity."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from autotune.errors import UsageError
from autotune.store import StudyKey
from tests.contract.store_samples import APP, MACHINE, MPI, key
from tests.refusals import refused

CONTEXT: list[dict[str, Any]] = [
    {"app": dataclasses.replace(APP, program_hash="0")},
    {"app": dataclasses.replace(APP, argv=("-n", "128"))},
    {"app": dataclasses.replace(APP, argv=("-n 64",))},
    {"app": dataclasses.replace(APP, input="large")},
    {"app": dataclasses.replace(APP, metric=None)},
    {"app": dataclasses.replace(APP, verify=None)},
    {"machine": dataclasses.replace(MACHINE, cores=4)},
    {"machine": dataclasses.replace(MACHINE, cpu_model="another")},
    {"machine": dataclasses.replace(MACHINE, memory_bytes=16 * 2**30)},
    {"machine": dataclasses.replace(MACHINE, kernel="6.2")},
    {"mpi": dataclasses.replace(MPI, family="mpich")},
    {"mpi": dataclasses.replace(MPI, version="5.0.12")},
    {"mpi": dataclasses.replace(MPI, library_hash="0")},
    {"ranks": 8},
    {"cluster": "big"},
    {"cluster_hash": "0"},
    {"inherited": {"btl": "tcp"}},
    {"conditions": {"clean_env": True}},
]
SEARCH: list[dict[str, Any]] = [
    {"space_hash": "0"},
    {"strategy": "random"},
    {"strategy_options": {"population": 10}},
    {"seed": 2},
]
DESCRIPTION: list[dict[str, Any]] = [
    {"app": dataclasses.replace(APP, name="other", program="/other")},
    {"machine": dataclasses.replace(MACHINE, hostname="other", memory_bytes=2**33 - 12345)},
    {"mpi": dataclasses.replace(MPI, path="/other")},
    {"space_name": "other"},
    {"stdin": "/home/user/input"},
]


@pytest.mark.parametrize("change", CONTEXT, ids=str)
def test_another_context_is_another_study(change: dict[str, Any]) -> None:
    assert key(**change).hash != key().hash
    assert key(**change).context != key().context


@pytest.mark.parametrize("change", SEARCH, ids=str)
def test_another_search_is_another_study_in_the_same_context(change: dict[str, Any]) -> None:
    assert key(**change).hash != key().hash
    assert key(**change).context == key().context


@pytest.mark.parametrize("change", DESCRIPTION, ids=str)
def test_descriptions_are_no_part_of_it(change: dict[str, Any]) -> None:
    assert (key(**change).hash, key(**change).context) == (key().hash, key().context)


def test_the_order_of_options_does_not_matter() -> None:
    one, other = ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert key(strategy_options=one).hash == key(strategy_options=other).hash


def test_every_field_was_tried() -> None:
    tried = {name for change in (*CONTEXT, *SEARCH, *DESCRIPTION) for name in change}
    assert tried == {field.name for field in dataclasses.fields(StudyKey)}


def test_hashes_stay_what_they_are() -> None:
    """Another way to hash would make every stored study unknown."""
    assert key().hash == "3e0641557a8e1870a3757bb5fefbb6cdd6dede6857ec0ae9d45b840145ca9bfa"
    assert key().context == "f81977dd70a63af120aeb0e59420f1f0d4ed43fda6053b1390dd6fe59e11c548"


def test_a_key_survives_json_and_can_be_a_dictionary_key() -> None:
    given = key(strategy_options={"a": [1.5]}, conditions={"x": None}, inherited={"é": "\udcff"})
    assert StudyKey.from_json(given.to_json()) == given
    assert {given: 1}[key(strategy_options={"a": [1.5]}, conditions={"x": None},
                          inherited={"é": "\udcff"})] == 1  # fmt: skip


def test_seeds_that_do_not_fit_are_refused() -> None:
    with refused(UsageError, "seed.range"):
        key(seed=2**63)
