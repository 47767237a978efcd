"""Models over layouts: recorded grids of different programs, and layouts for programs left out."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from autotune.api.layout_prediction import (
    UNSEEN,
    layout_start,
    predict_layout,
)
from autotune.api.over_decomposition import over_decomposition, spaces_with_layouts
from autotune.api.search import begin_search
from autotune.api.training import layout_kinds, train_layout_model
from autotune.calibration.wire import Wire
from autotune.config.app import load_app
from autotune.config.cluster import Cluster
from autotune.datasets import load
from autotune.errors import UsageError
from autotune.notes import Note
from autotune.prediction.examples import stored_calibration, stored_features
from autotune.prediction.layout_composition import LayoutComposition
from autotune.prediction.layout_evaluation import ONE_LAYOUT, best_rules, evaluate_layouts
from autotune.prediction.layout_examples import (
    LayoutExample,
    LayoutTrainingSet,
    layout_training_set,
    only_layouts,
)
from autotune.prediction.layout_kinds import LAYOUT_KINDS
from autotune.prediction.layout_model_file import (
    find_layout_model,
    layout_place,
    read_layout_model,
)
from autotune.prediction.layout_models import LayoutNeighbours
from autotune.prediction.layout_parts import PARTS, FlatRun, layout_parts
from autotune.prediction.layout_points import COLUMNS
from autotune.prediction.layout_predictor import train_layouts
from autotune.prediction.training import silent
from autotune.space import DEFAULT, Setting
from autotune.store import Store
from autotune.study.study_request import SearchRequest
from autotune.targets.request import TargetRequest
from autotune.targets.target import Target
from runner.machine import describe_machine
from runner.mpi.library import Library
from tests.cli.conftest import Cli
from tests.refusals import refused

TWO_NODES = (
    "grid-mate-testbed",
    "grid-tarragon-testbed",
    "grid-tarragon-testbed-xeon",
    "grid-tpod-testbed",
)
SHIPPED = (*TWO_NODES, "grid-mate-node", "grid-tpod-node")
"""What the shipped model has learned from: autotune train DATASET... -o."""


@cache
def data() -> LayoutTrainingSet:
    return layout_training_set(TWO_NODES)


def target(app: str, input_name: str, nodes: int = 2) -> Target:
    return Target(
        app=load_app(app),
        input=input_name,
        ranks=2,
        cluster=Cluster(name="two", nodes=nodes, cores_per_node=2 // nodes),
        library=Library("openmpi", "5.0.11", "", "mpirun"),
        cores=2,
    )


def test_cells_of_runtimes_are_examples_and_all_but_one_are_used() -> None:
    assert only_layouts(TWO_NODES)
    assert not only_layouts(["grid-testbed"])
    assert len(data().examples) == 10
    assert len(data().apps) == 7
    notes = {(note.code, note.data["cell"]) for note in data().notes}
    assert notes == {("cell.few_runs", "grid-tarragon-testbed/tb-tarragon-ring")}


def test_points_have_the_columns_and_say_what_is_eager() -> None:
    example = next(e for e in data().examples if e.app == "cannon")
    assert example.points.shape == (len(example.settings), len(COLUMNS))
    eager = list(COLUMNS).index("eager")
    by_setting = dict(zip(example.settings, example.points[:, eager], strict=True))
    assert by_setting[DEFAULT] == 0
    assert by_setting[Setting.parse("variant=mate,side=6")] == COLUMNS["eager"]


def test_programs_left_out_get_most_of_the_gain_and_none_is_slower() -> None:
    """What the issue of layouts asks for, on the recorded grids across two nodes."""
    evaluation = evaluate_layouts(data(), ("knn",))
    rows = {row.method: row for row in evaluation.rows}
    assert rows["default"].share == 0
    for method in ("knn", ONE_LAYOUT):
        row = rows[method]
        assert row.share is not None
        assert row.share >= 0.5
        assert row.share_lower is not None
        assert row.share_lower > 0
        assert row.slower == 0
        assert all(verdict.ratio <= 1.03 for verdict in row.verdicts)


def _without_effect(seed: int) -> list[LayoutExample]:
    """The examples with runs of their defaults in place of all runs."""
    rng = np.random.default_rng(seed)
    return [
        replace(
            example,
            runs=tuple(tuple(np.exp(rng.normal(0, 0.02, 3))) for _ in example.settings),
            opub=1.0,
            null=True,
        )
        for example in data().examples
    ]


@pytest.mark.parametrize("kind", LAYOUT_KINDS)
def test_where_no_layout_does_anything_the_default_is_named(kind: str) -> None:
    examples = _without_effect(1)
    predictor = train_layouts(kind, examples).predictor
    assert all(predictor.name(e.settings, e.points, e.parts).setting == DEFAULT for e in examples)
    assert best_rules(examples)[1] == DEFAULT


RUN = FlatRun(seconds=1.0, compute=0.5, steps=100, rounds=100, messages=100, bytes=1e7)
"""A flat run that computes half of its time and sends 100 KB in each step."""


def _traced(hidden: float, task_us: float) -> list[LayoutExample]:
    """The examples as if each program were RUN, whose tasks hide so much and cost so much."""
    traced = []
    for example in data().examples:
        dataset, key = example.key.split("/")
        layouts = load(dataset).layouts(key)
        wire = Wire.of_link(1e-3, 1e9)
        parts = layout_parts(RUN, wire, layouts, example.settings, "openmpi")
        part = {name: parts[:, PARTS.index(name)] for name in PARTS}
        ratio = part["compute"] + part["exposed"] - hidden * part["hidden_tasks"]
        ratio += task_us * part["tasks"]
        runs = tuple((float(r),) * 3 for r in ratio / ratio[0])
        traced.append(replace(example, parts=parts, runs=runs, null=False, opub=float(ratio.min())))
    return traced


def test_a_composition_learns_what_tasks_hide_and_cost() -> None:
    examples = _traced(0.8, 20.0)
    model = LayoutComposition.fit(examples, {"width": 1.0})
    for example in examples:
        scores = model.scores(example.points, example.parts)
        assert np.abs(scores - example.logs).max() < 0.03
    again = LayoutComposition.from_json(json.loads(json.dumps(model.to_json())))
    one = examples[0]
    assert again.scores(one.points, one.parts) == pytest.approx(model.scores(one.points, one.parts))
    assert not model.scores(one.points, np.zeros_like(one.parts)).any()


def test_traced_programs_get_the_composed_model_where_it_is_better(tmp_path: Path) -> None:
    examples = tuple(_traced(0.8, 20.0))
    place = tmp_path / "model.json"
    document, _ = train_layout_model(
        LayoutTrainingSet(examples), ("knn", "composed"), place, silent
    )
    assert document.kind == "knn"
    model = read_layout_model(place)
    assert (model.traced is not None) == (document.cost["composed"] < document.cost["knn"])
    assert model.best(is_traced=False) is model.predictor


def test_a_layout_far_from_all_known_ones_is_not_named() -> None:
    predictor = train_layouts("knn", data().examples).predictor
    example = data().examples[0]
    assert len(predictor.name(example.settings, example.points, example.parts).setting)
    answer = predictor.name(example.settings, example.points + 100, example.parts)
    assert answer.setting == DEFAULT
    narrow = replace(predictor, confidence=replace(predictor.confidence, reach=-1.0))
    answer = narrow.name(example.settings, example.points, example.parts)
    assert (answer.setting, answer.far) == (DEFAULT, True)
    assert answer.unsure


def test_of_equally_good_layouts_the_one_with_fewest_parameters_is_named() -> None:
    example = next(e for e in data().examples if e.app == "jacobi3d")
    scorer = LayoutNeighbours.fit(data().examples, {"width": 1e3})
    predictor = replace(train_layouts("knn", data().examples).predictor, scorer=scorer)
    assert len(predictor.name(example.settings, example.points, example.parts).best) == 1


def test_a_model_is_the_same_when_it_is_read_again(tmp_path: Path) -> None:
    place = tmp_path / "model.json"
    document, _ = train_layout_model(data(), ("knn",), place, silent)
    assert (document.kind, document.cells) == ("knn", 10)
    model = read_layout_model(place)
    assert model.about.data_hash == data().hash
    for example in data().examples:
        scores = model.predictor.scorer.scores(example.points, example.parts)
        fitted = LayoutNeighbours.fit(data().examples, model.about.options)
        again = fitted.scores(example.points, example.parts)
        assert scores == pytest.approx(again)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"schema": "autotune-model-1"}, "model.version"),
        ({"columns": ["tasks"]}, "model.invalid"),
        ({"predictor": {"scorer": {"kind": "code"}}}, "model.invalid"),
    ],
    ids=["schema", "columns", "kind"],
)
def test_a_damaged_model_is_refused(tmp_path: Path, change: dict[str, object], code: str) -> None:
    place = tmp_path / "model.json"
    train_layout_model(data(), ("knn",), place, silent)
    place.write_text(json.dumps(json.loads(place.read_text()) | change))
    with refused(UsageError, code):
        read_layout_model(place)


def test_the_shipped_model_is_made_from_the_recorded_grids() -> None:
    """Whoever changes one of them, or a word of their spaces, trains again (docs/howto)."""
    model = find_layout_model()
    assert model.about.data_hash == layout_training_set(SHIPPED).hash
    assert model.about.sources == SHIPPED


def test_other_models_are_refused_for_layouts() -> None:
    assert layout_kinds("auto", None) == ("knn", "mlp", "composed")
    for model, preset in (("exposure", None), ("knn", "thesis")):
        with refused(UsageError, "training.not_applicable"):
            layout_kinds(model, preset)


def test_a_layout_is_named_in_the_program_s_own_parameters(tmp_path: Path) -> None:
    place = tmp_path / "model.json"
    train_layout_model(data(), ("knn",), place, silent)
    prediction = predict_layout(target("minighost", "brief"), "mate", str(place))
    setting = prediction.answer.setting
    assert setting["variant"] == "mate"
    assert prediction.space.name == "mate-minighost"
    assert prediction.space.is_canonical(setting)
    document = prediction.document()
    assert document.words["model"] == "tasks"
    assert float(document.words["chunk"]) < 65536
    assert document.expected_gain is not None
    assert document.expected_gain > 0


def test_a_program_whose_work_cannot_be_cut_keeps_its_default() -> None:
    prediction = predict_layout(target("ring", "large"), "tarragon")
    assert prediction.answer.best == DEFAULT
    assert prediction.to_check == DEFAULT


def test_on_a_machine_that_the_model_has_not_seen_the_default_is_named() -> None:
    prediction = predict_layout(target("minighost", "brief"), "mate")
    if describe_machine().fingerprint in prediction.model.about.machines:
        assert len(prediction.answer.setting)
    else:
        assert prediction.answer.setting == DEFAULT
        assert prediction.answer.unsure == UNSEEN
        assert prediction.to_check["variant"] == "mate"


@pytest.mark.parametrize(
    ("space", "code"),
    [(None, "prediction.no_space"), ("null", "prediction.no_layouts")],
    ids=["none", "null"],
)
def test_a_space_with_words_is_needed(space: str | None, code: str) -> None:
    with refused(UsageError, code):
        predict_layout(target("minighost", "brief"), space)


def test_the_spaces_of_a_program_are_its_own_and_general_ones() -> None:
    names = spaces_with_layouts(load_app("jacobi3d"))
    assert {"mate", "tarragon", "tpod", "hybrid"} <= set(names)
    assert "mate-minighost" not in names


def test_a_search_begins_with_the_layout_of_the_user_s_model_only() -> None:
    own = target("minighost", "brief")
    space = own.space("mate")
    assert layout_start(space, own, shipped=False) == DEFAULT
    assert layout_start(space, own, shipped=True) != DEFAULT
    layout_place().parent.mkdir(parents=True, exist_ok=True)
    train_layout_model(data(), ("knn",), layout_place(), silent)
    start = layout_start(space, own, shipped=False)
    assert start["variant"] == "mate"
    assert space.is_valid(start)
    assert layout_start(own.space("null"), own, shipped=True) == DEFAULT


def test_the_search_of_a_trained_user_tries_that_layout_first(tmp_path: Path) -> None:
    layout_place().parent.mkdir(parents=True, exist_ok=True)
    train_layout_model(data(), ("knn",), layout_place(), silent)
    own, notes = target("minighost", "brief"), list[Note]()
    request = SearchRequest(
        target=TargetRequest(app="minighost", input="brief", ranks=2), space="mate", trials=4
    )
    with Store.open(tmp_path / "store.db") as store:
        begin_search(request, store, target=own, space=own.space("mate"), say=notes.append)
    (note,) = [note for note in notes if note.code == "search.layout_start"]
    assert note.data["setting"]["variant"] == "mate"


def test_predict_needs_a_program_or_features(cli: Cli) -> None:
    asked = cli("predict")
    assert asked.code == 2
    assert "[prediction.missing]" in asked.err
    params = cli("predict", "--app", "ring", "--space", "tarragon", "--params-file", "f")
    assert params.code == 2
    assert "[prediction.options]" in params.err


def test_predict_writes_a_document(cli: Cli) -> None:
    asked = cli("predict", "--app", "jacobi3d", "--space", "mate", "--json", "-")
    assert asked.code == 0, asked.err
    document = json.loads(asked.out)
    assert document["schema"] == "autotune-layout-prediction-1"
    assert document["space"] == "mate-jacobi3d"


def test_a_flat_program_is_told_what_over_decomposition_could_bring() -> None:
    dataset = load("explore-testbed")
    cell = next(cell for cell in dataset.cells if stored_features(dataset, cell) is not None)
    features = stored_features(dataset, cell)
    assert features is not None
    room = over_decomposition(replace(features, app="jacobi3d"))
    assert room.most_gain == features.values["comm_to_comp"]
    assert {"mate", "tarragon", "tpod"} <= set(room.spaces)
    assert over_decomposition(replace(features, app=None)).spaces == []


def test_the_wire_of_a_calibration_is_that_of_its_testbed() -> None:
    calibration = stored_calibration(load("programs-testbed"))
    assert calibration is not None
    table = calibration.table(2, 2)
    assert table is not None
    wire = Wire.of_table(table, 65536)
    assert wire is not None
    # 1 ms each way, 1 Gbit/s.
    assert 0.9e-3 < wire.latency_s < 1.3e-3
    assert 1.0e8 < wire.bytes_per_s < 1.5e8
    assert 1.5 < wire.crossings < 5
    assert wire.waiting_s(100_000, 65536) == pytest.approx(wire.crossings * wire.latency_s)
