"""Features files: what is written is read again, and nothing else is."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from runner.errors import RunnerError
from runner.trace import (
    COUNT_NAMES,
    FEATURE_NAMES,
    FEATURES,
    SCHEMA,
    SPECS,
    THESIS_NAMES,
    Features,
    FeaturesError,
    Profile,
    features_from_json,
    load_features,
)
from runner.trace.partners import MOST_PAIRS, partners_of
from tests.refusals import refusal, refused
from tests.trace.samples import features, rank_counts

FREE = sorted(name for name in FEATURE_NAMES if SPECS[name].largest is None and name != "ranks")


def test_the_schema_names_each_feature_once() -> None:
    assert SCHEMA == "autotune-features-1"
    assert len(set(FEATURE_NAMES)) == len(FEATURES) == 107
    assert len(THESIS_NAMES) == 19
    assert set(COUNT_NAMES) < set(FEATURE_NAMES)
    assert all(spec.unit and spec.definition for spec in FEATURES)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.sampled_from(FREE), st.floats(0, 1e300)))
def test_any_features_survive_the_file(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, float]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    wanted = features(values)
    wanted.save(path)
    assert load_features(path) == wanted


def test_vector_follows_the_names() -> None:
    found = features()
    assert found.vector(["ranks", "p2p_bytes"]) == [2.0, 8.0]
    assert len(found.vector()) == len(FEATURE_NAMES)


def _with(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda data: data.update(changes)


def _feature(name: str, value: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda data: data["features"].update({name: value})


CHANGES: list[Callable[[dict[str, Any]], Any]] = [
    _with(schema="autotune-features-2"),
    _with(schema=["autotune-features-1"]),
    lambda data: data.pop("profile"),
    lambda data: data.pop("partners"),
    lambda data: data.pop("schema"),
    lambda data: data.pop("argv"),
    _with(colour="red"),
    lambda data: data["features"].pop("p2p_bytes"),
    _feature("p2p_colour", 1),
    _feature("p2p_bytes", math.nan),
    _feature("p2p_bytes", math.inf),
    _feature("p2p_bytes", -1),
    _feature("p2p_bytes", True),
    _feature("p2p_bytes", "8"),
    _feature("p2p_bytes", 10**400),
    _feature("wait_share", 1.5),
    _feature("ranks", 3),
    _with(ranks=0),
    _with(ranks=2.0),
    _with(argv=[]),
    _with(argv=["a", 1]),
    _with(mpi={"name": "openmpi"}),
    _with(machine=None),
    _with(method="guess"),
    _with(app=3),
    _with(features=[1]),
]


def test_what_is_wrong_is_said_with_its_key(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    path, texts = tmp_path / "bad.json", []
    for change in CHANGES:
        data = features().to_json()
        change(data)
        path.write_text(json.dumps(data))
        texts.append(refusal(FeaturesError, load_features, path).replace(str(path), "FILE"))
    assert texts == snapshot


def partnered() -> Features:
    """Three ranks on two nodes; the profile is empty."""
    ranks = [rank_counts(0, 3, {1: (3, 24), 2: (1, 8)}), rank_counts(1, 3), rank_counts(2, 3)]
    ranks[2].host = "other"
    ranks[2].to[0] = (4, 0)
    return dataclasses.replace(
        features({"ranks": 3.0}),
        ranks=3,
        nodes=2,
        profile=Profile((), 1.0, {}),
        figure_s=1.0,
        partners=partners_of(ranks),
    )


def test_partners_survive_the_file(tmp_path: Path) -> None:
    wanted = partnered()
    assert wanted.partners is not None
    assert wanted.partners.nodes == (0, 0, 1)
    assert wanted.partners.pairs == ((0, 1, 3, 24), (0, 2, 1, 8), (2, 0, 4, 0))
    wanted.save(tmp_path / "f.json")
    assert load_features(tmp_path / "f.json") == wanted


def test_wrong_partners_are_said(snapshot: SnapshotAssertion) -> None:
    changes: list[Callable[[dict[str, Any]], Any]] = [
        lambda of: of.pop("pairs"),
        lambda of: of.update(colour=1),
        lambda of: of.update(nodes=[0, 0]),
        lambda of: of.update(nodes=[0, 0, 2]),
        lambda of: of.update(nodes=[0, 0, 0]),
        lambda of: of["pairs"].append([0, 3, 1, 1]),
        lambda of: of["pairs"].append([0, 1, 1, 1]),
        lambda of: of["pairs"].append([1, 0, 1]),
        lambda of: of["pairs"].append([1, 0, -1, 1]),
        lambda of: of.update(pairs=[[0, 0, 1, 1]] * (MOST_PAIRS + 1)),
    ]
    texts = []
    for change in changes:
        data = partnered().to_json()
        change(data["partners"])
        texts.append(refusal(FeaturesError, features_from_json, data, "f.json"))
    assert texts == snapshot


def test_many_pairs_are_left_out() -> None:
    size = 150
    everyone = dict.fromkeys(range(size), (1, 8))
    ranks = [rank_counts(rank, size, dict(everyone)) for rank in range(size)]
    assert size**2 > MOST_PAIRS
    assert partners_of(ranks) is None


def test_the_files_of_the_shipped_datasets_are_read_as_they_were_written() -> None:
    """Only the datasets with a calibration, and later traces, hold profiles."""
    files = sorted((Path(__file__).parents[2] / "datasets").glob("*/features/*.json"))
    assert files
    with_profile = set()
    for path in files:
        found = load_features(path)
        assert found.to_json() == json.loads(path.read_text())
        calibrated = (path.parents[1] / "calibration.json").is_file()
        assert (found.profile is not None) == (calibrated or found.steps is not None), path
        with_profile.add(calibrated)
    assert with_profile == {False, True}


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    path.write_text(" " * ((4 << 20) + 1))
    with refused(FeaturesError, "features.too_large"):
        load_features(path)


@pytest.mark.parametrize("share", [0, 0.3, 0.99])
def test_a_file_cut_off_is_refused(tmp_path: Path, share: float) -> None:
    path = tmp_path / "cut.json"
    features().save(path)
    text = path.read_text()
    path.write_text(text[: int(len(text) * share)])
    with refused(FeaturesError, "features.damaged"):
        load_features(path)


def test_no_file_binary_and_a_list_are_refused(tmp_path: Path) -> None:
    with refused(FeaturesError, "features.unreadable"):
        load_features(tmp_path / "none.json")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with refused(FeaturesError, "features.unreadable"):
        load_features(tmp_path / "binary")
    with refused(FeaturesError, "features.damaged"):
        features_from_json([], "here")


def test_saving_leaves_the_old_file_where_it_fails(tmp_path: Path) -> None:
    with refused(RunnerError, "file.unwritable"):
        features().save(tmp_path / "missing" / "f.json")
    assert list(tmp_path.iterdir()) == []
