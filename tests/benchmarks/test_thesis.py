"""The thesis' experiments: what is chosen, how it is counted, and the tables."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from autotune.anova.table import RunTable, dataset_table
from autotune.datasets import load
from autotune.datasets.plan import load_plan
from autotune.prediction import TrainingSet
from autotune.space import Setting
from benchmarks.harness.synthetic_tables import additive, cell_facts, random_settings, table_of
from benchmarks.thesis import classwide, parameters, prediction
from benchmarks.thesis.power import DESIGNS
from benchmarks.thesis.source import printed
from tests.prediction.family import SIZES, example

LIMIT = "btl_tcp_eager_limit"


def test_the_plan_varies_what_correlates_most() -> None:
    found = parameters.correlations([dataset_table(load(n)) for n in parameters.DATASETS])
    chosen = {one.name for one in found[: parameters.CHOSEN]}
    cells = load_plan(parameters.PLAN).cells
    assert all(set(cell.levels or {}) == chosen for cell in cells)
    assert found[0].mean > found[0].chance > 0
    assert len({cell.app for cell in cells}) == 8
    assert len(cells) == 16


def test_the_tables_of_the_thesis_are_copied_right() -> None:
    means = {
        cluster: [statistics.fmean(column) for column in zip(*rows.values(), strict=True)]
        for cluster, rows in printed()["applications"].items()
    }
    assert means["IBM"] == pytest.approx([0.48, 2.58, 3.61], abs=0.006)
    assert means["LEO2"] == pytest.approx([0.56, -10.75, 20.06], abs=0.006)
    for part in ("settings", "parts"):
        source = printed()[part]
        assert {len(row) for row in source["rows"].values()} == {len(source["columns"])}


def test_methods_are_counted_as_in_the_thesis() -> None:
    data = TrainingSet(tuple(example(f"app{i}", float(s)) for i, s in enumerate(SIZES[::2])))
    lines = {line.method: line for line in prediction.method_lines(data, "cell", ("knn-thesis",))}
    own, default = lines[prediction.OWN], lines["default"]
    first = data.examples[0]
    assert default.scores[0].performance == pytest.approx(float(first.measured_ratios.min()))
    assert default.scores[0].of_gain == 0.0
    assert own.performance == pytest.approx(1.0, abs=0.03)
    best = prediction.named_score(first, first.fastest)
    assert (best.performance, best.of_gain) == (pytest.approx(1.0), pytest.approx(1.0))
    assert lines["random"].performance < own.performance
    assert prediction.shown(lines["knn-thesis"])["thesis"] != "-"
    svg = prediction.program_bars(list(lines.values()), data.apps)
    assert svg.count("APP") == 2 * len(data.apps)


def test_a_cell_without_a_gain_has_no_share_of_it() -> None:
    assert prediction.named_score(example("a", 150.0, null=True, noise=0.0), 1).of_gain is None


@pytest.fixture(scope="module")
def runs() -> RunTable:
    rng = np.random.default_rng(5)
    levels = {LIMIT: [None, 4096, 524288], "btl_tcp_links": [None, 2], "map_by": [None, "node"]}
    levels["btl_sm_eager_limit"] = [None, *range(8)]
    places = cell_facts(["a", "b"], ["S"], [2, 4])
    drawn = random_settings(levels, 80, rng)
    return table_of(drawn, places, additive({LIMIT: {524288: -math.log(1.2)}}), rng, noise=0.02)


def test_the_tables_have_what_helps_beside_the_thesis(runs: RunTable) -> None:
    settings = classwide.settings_of(runs, 0)
    assert settings["ANOVA"] == settings["careful"] == Setting({LIMIT: 524288})
    assert len([name for name in settings if name.startswith("RAND")]) == classwide.RANDOM
    rows = {row["parameter"]: row for row in classwide.settings_table(runs, settings)}
    assert rows[LIMIT]["ANOVA"] == rows[LIMIT]["BEST"] == "512K"
    assert rows[LIMIT]["LEO2 ANOVA"] == "128K"
    assert rows["(mpi_leave_pinned)"]["ANOVA"] == "absent"
    by_ranks = {row["parameter"]: row for row in classwide.parts_table(runs, "ranks")}
    assert (by_ranks[LIMIT]["2"], by_ranks[LIMIT]["4"]) == ("512K", "512K")
    assert classwide.parts_table(runs, "input") == []
    assert {row["chosen by"] for row in classwide.shares_table(runs, 0)} > {"anova", "careful"}


def test_settings_of_a_harmful_parameter_are_left_out_of_the_second_choice() -> None:
    rng = np.random.default_rng(6)
    levels = {LIMIT: [None, 4096, 524288], "btl_tcp_use_nagle": [None, True]}
    effects = {LIMIT: {524288: -math.log(1.2)}, "btl_tcp_use_nagle": {True: math.log(3.0)}}
    places = cell_facts(["a", "b"], ["S"], [2, 4])
    drawn = random_settings({**levels, "btl_sm_eager_limit": [None, *range(8)]}, 80, rng)
    runs = table_of(drawn, places, additive(effects), rng, noise=0.02)
    rows = classwide.harmless_table(runs)
    free = sum("use_nagle" not in key for key in runs.rows["key"])
    assert {(row["settings"], row["rows"]) for row in rows} == {
        ("all", f"{len(runs.rows)}"),
        ("without btl_tcp_use_nagle", f"{free}"),  # data
    }
    assert {row["chosen"] for row in rows[2:]} == {f"{LIMIT}=524288"}


def test_gains_of_an_application_are_of_medians() -> None:
    times = {
        "default": [2.0, 9.0, 2.0],
        "ANOVA": [1.6] * 3,
        "careful": [2.0] * 3,
        "BEST": [4.0] * 3,
    }
    times |= {"RAND 1": [1.0] * 3, "RAND 2": [math.inf] * 3}
    row = classwide.application_row("lammps:melt:4", times)
    assert (row["ANOVA"], row["BEST"], row["RAND"]) == ("+25.0%", "-50.0%", "+0.0%")
    assert row["default"] == "2.000 s"


def test_the_designs_of_the_simulation_are_those_of_the_plans() -> None:
    for design, name in ((DESIGNS[0], "explore-testbed"), (DESIGNS[1], "explore-thesis-testbed")):
        plan = load_plan(name)
        assert (design.name, design.settings, design.keep) == (name, plan.settings, plan.keep)
    rng = np.random.default_rng(1)
    drawn = random_settings(DESIGNS[0].levels(), 300, rng)
    assert statistics.fmean(map(len, drawn)) == pytest.approx(0.4 * 27, rel=0.15)
