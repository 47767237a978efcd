"""Model files: what is saved is what is loaded, and nothing else gets in."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.errors import UsageError
from autotune.prediction import (
    KINDS,
    ModelFile,
    find_model,
    load_model,
    model_from_text,
    model_of,
    train,
    warm_start_settings,
)
from autotune.prediction.scorer import model_values
from autotune.prediction.warm_start import usable
from autotune.space import DEFAULT, Parameter, Setting, Space
from tests.case_table import case_table
from tests.prediction.family import BIND, EAGER, LIMIT, SETTINGS, family, traced
from tests.refusals import refused

FAMILY = family()
SPACE = Space(
    "toy",
    (Parameter(LIMIT, tuple(EAGER), default=4096), Parameter("bind_to", tuple(BIND), "placement")),
)


@cache
def made(kind: str) -> ModelFile:
    trained = train(kind, FAMILY.examples[::3])
    return model_of(trained, FAMILY, {kind: trained.cost})


@cache
def text_of(kind: str) -> str:
    """The file of a model, which is trained when a test asks for it, not when tests are listed."""
    return json.dumps(made(kind).to_json(), allow_nan=False)


def texts() -> tuple[str, ...]:
    """The file of a model of each kind."""
    return tuple(map(text_of, KINDS))


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_model_says_what_the_saved_one_said(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(text_of(kind))
    loaded, fresh = load_model(path), made(kind)
    for size in (130.0, 2500.0, 15000.0):
        values = model_values(traced(size))
        assert loaded.predictor.name(values, SETTINGS) == fresh.predictor.name(values, SETTINGS)
    assert loaded.settings == fresh.settings
    assert loaded.about == fresh.about
    assert loaded.about.data_hash == FAMILY.hash
    assert loaded.about.machines == ("f" * 16,)
    assert "scikit-learn" in loaded.about.versions


def leaves(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every entry."""
    found = [path] if path else []
    if isinstance(data, dict):
        for key in data:
            found += leaves(data[key], (*path, key))
    elif isinstance(data, list):
        for at in range(min(len(data), 2)):
            found += leaves(data[at], (*path, at))
    return found


def replaced(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(data)
    place = changed
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return changed


WRONG = st.one_of(
    st.none(), st.integers(), st.floats(), st.text(), st.lists(st.integers()), st.just({"a": [1]})
)


@settings(max_examples=120, deadline=None)
@given(kind=st.sampled_from(sorted(KINDS)), data=st.data())
def test_a_damaged_model_is_refused_or_still_a_model(kind: str, data: st.DataObject) -> None:
    content = json.loads(text_of(kind))
    path = data.draw(st.sampled_from(leaves(content)))
    text = json.dumps(replaced(content, path, data.draw(WRONG)))
    try:
        model = model_from_text(text, "m.json")
    except UsageError as problem:
        told = str(problem)
    else:
        told = "m.json autotune train"
        assert model.predictor.name(model_values(traced(500.0)), SETTINGS).setting in SETTINGS
    assert told.startswith("m.json")
    assert "autotune train" in told


@settings(max_examples=40, deadline=None)
@given(kind=st.sampled_from(sorted(KINDS)), cut=st.integers(0, 10_000))
def test_a_model_that_was_cut_off_is_refused(kind: str, cut: int) -> None:
    text = text_of(kind)
    with refused(UsageError, "model.damaged"):
        model_from_text(text[: cut % len(text)], "m.json")


@case_table(
    ("change", "code", "named"),
    [
        ({"schema": "autotune-model-2"}, "model.version", "autotune-model-2"),
        ({"predictor": None}, "model.invalid", "predictor"),
        ({"settings": [{"a b": 1}]}, "model.invalid", "'a b'"),
        ({"settings": 3}, "model.invalid", "settings"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], code: str, named: str) -> None:
    with refused(UsageError, code) as caught:
        model_from_text(json.dumps(json.loads(text_of("knn")) | change), "m.json")
    assert named in str(caught.value)


def test_nan_is_no_number() -> None:
    with pytest.raises(UsageError) as caught:
        model_from_text(text_of("knn").replace('"reach": ', '"reach": NaN, "x": ', 1), "m.json")
    assert caught.value.code == "model.damaged"


def test_an_unknown_kind_of_model_is_named() -> None:
    text = text_of("knn").replace('"kind": "knn"', '"kind": "os.system"')
    with refused(UsageError, "model.invalid"):
        model_from_text(text, "m.json")


def test_a_model_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refused(UsageError, "model.unreadable"):
        find_model(str(tmp_path / "none.json"))
    with refused(UsageError, "model.unreadable"):
        find_model(str(tmp_path))


def test_the_users_own_model_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "autotune").mkdir()
    (tmp_path / "autotune" / "model.json").write_text(text_of("knn"))
    assert find_model().place == str(tmp_path / "autotune" / "model.json")


def test_priors_are_legal_in_the_space_and_best_first() -> None:
    trained = train("knn", FAMILY.examples)
    model = model_of(trained, FAMILY, {})
    priors = warm_start_settings(traced(150.0), SPACE, model, "openmpi")
    assert priors[0].get(LIMIT) == 512
    assert 1 <= len(priors) <= 3
    assert all(SPACE.is_valid(p) and p != DEFAULT for p in priors)


def test_priors_leave_out_what_the_space_does_not_have() -> None:
    narrow = Space("narrow", (Parameter(LIMIT, (512, 1024), default=4096),))
    model = model_of(train("knn", FAMILY.examples), FAMILY, {})
    expected = [Setting({LIMIT: 512})]
    assert warm_start_settings(traced(150.0), narrow, model, "openmpi") == expected
    other = Space("other", (Parameter("mpi_yield_when_idle", (0, 1)),))
    assert warm_start_settings(traced(150.0), other, model, "openmpi") == []


def test_settings_that_mean_the_default_are_no_candidates() -> None:
    assert usable([Setting({LIMIT: 4096}), DEFAULT, Setting({LIMIT: 512})], SPACE) == [
        Setting({LIMIT: 512})
    ]
