"""Cells with different spaces, joined by the vocabulary of layouts: analysis, rules, class-wide."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import pytest

from autotune.anova.classwide import choose
from autotune.anova.classwide_result import ClasswideResult, OwnSetting
from autotune.anova.factors import FactorOptions
from autotune.anova.layout_rules import Choices, local_setting, recorded_setting, rule_table
from autotune.anova.layout_table import layout_table, levels_of, speaks_layouts
from autotune.anova.paired_runs import PairTerms, check_programs, measure_pairs
from autotune.anova.table import RunTable
from autotune.api.anova import Analysis, analyse
from autotune.api.classwide import class_of
from autotune.comparison.comparison_outcome import ComparisonOutcome
from autotune.comparison.paired_comparison import ComparisonRequest
from autotune.datasets import Dataset, load
from autotune.errors import UsageError
from autotune.measurement.budget import BudgetTooSmall
from autotune.publish.layout_variables import layout_content
from autotune.space import DEFAULT, Setting, Space, Value, load_space
from autotune.space.eager import eager_limit
from autotune.space.layout import LayoutMap
from benchmarks.classwide_simulation import program
from tests.case_table import case_table
from tests.cli.conftest import Cli
from tests.cli.conftest import cli as cli
from tests.refusals import refused

MATE = "grid-mate-testbed"
BELOW_EAGER = Setting.parse("model=tasks,factor=8,chunk=eager")


@cache
def mate() -> Dataset:
    return load(MATE)


@cache
def analysis() -> Analysis:
    return analyse(MATE, FactorOptions())


@cache
def rules() -> RunTable:
    return rule_table(mate(), mate().cells)


def test_every_word_is_tested_and_chunks_below_the_eager_limit_are_found() -> None:
    factors = {factor.name: factor for factor in analysis().factors}
    assert all(sum(level.has_mean for level in f.levels) > 1 for f in factors.values())
    assert {"factor", "chunk", "cut_x", "cut_y", "model", "balance"} <= factors.keys()
    assert analysis().setting == Setting({"chunk": "eager"})
    assert [note.code for note in analysis().notes if note.code == "layout.joined"]


def test_a_table_has_a_row_for_each_setting_and_cell() -> None:
    table = layout_table(mate(), mate().cells)
    assert len(table.rows) == sum(len(mate().settings(cell)) for cell in mate().cells)
    assert not set(table.rows["key"]).intersection(s.key for s in mate().settings("tb-mate-cannon"))


@case_table(
    ("name", "joined"),
    [(MATE, True), ("grid-cab-node", False), ("grid-tpod-testbed", False), ("grid-testbed", False)],
)
def test_only_different_spaces_with_words_are_joined(name: str, joined: bool) -> None:
    dataset = load(name)
    assert speaks_layouts(dataset, dataset.cells) is joined


def test_levels_are_powers_of_two_and_chunks_against_the_eager_limit() -> None:
    layouts = mate().layouts("tb-mate-cannon")
    assert levels_of(layouts, DEFAULT, "openmpi")["chunk"] == "long"
    setting = Setting.parse("variant=mate,side=6")
    assert levels_of(layouts, setting, "openmpi") == {
        "model": "tasks", "workers": 1, "factor": 16, "chunk": "eager", "queue": "stealing",
        "barrier": "neighbours",
    }  # fmt: skip
    short = levels_of(layouts, Setting.parse("variant=mate,side=16,split=4"), "openmpi")
    assert short["chunk"] == "short"


def test_the_eager_limit_is_that_of_the_setting_and_the_place() -> None:
    assert eager_limit("openmpi", 2, {}) == 65536
    assert eager_limit("openmpi", 2, {"btl_tcp_eager_limit": 262144}) == 262144
    assert eager_limit("openmpi", 1, {"btl_tcp_eager_limit": 262144}) == 4096


def test_a_rule_becomes_each_program_s_own_setting() -> None:
    settings = {cell.app: recorded_setting(mate(), cell, BELOW_EAGER) for cell in mate().cells}
    assert settings == {
        "jacobi3d": Setting.parse("variant=mate,odf=8"),
        "cannon": Setting.parse("variant=mate,split=2"),
        "cloverleaf3d": Setting.parse("variant=mate,odf=8,local_y=8"),
        "flowcart": Setting.parse("variant=mate,odf=8"),
    }


def test_a_rule_is_obeyed_in_a_whole_space_too() -> None:
    place = {"ranks": 2, "cores": 1, "nodes": 2}
    facts = {"cells_x": 64, "cells_y": 64, "cells_z": 64}
    layouts = LayoutMap(load_space("mate-cloverleaf3d", None, place, facts))
    setting = local_setting(layouts, BELOW_EAGER, "openmpi")
    assert layouts.space.is_canonical(setting)
    words = levels_of(layouts, setting, "openmpi")
    assert (words["model"], words["factor"], words["chunk"]) == ("tasks", 8, "eager")


def test_where_no_work_can_be_cut_the_default_stays() -> None:
    dataset = load("grid-tarragon-testbed")
    cell = dataset.cell("tb-tarragon-ring")
    assert recorded_setting(dataset, cell, BELOW_EAGER) == DEFAULT


def test_a_program_without_the_model_keeps_its_default() -> None:
    layouts = mate().layouts("tb-mate-cannon")
    flat = Choices.of(layouts, [DEFAULT, Setting.parse("variant=overlap")], "openmpi")
    assert flat.obey(BELOW_EAGER) == 0


def test_a_rule_is_chosen_for_the_class_and_gains_on_programs_left_out() -> None:
    choice = choose(rules(), FactorOptions())
    row = next(row for row in choice.rows if row.name == choice.method)
    assert choice.method == "direct"
    assert choice.setting["chunk"] == "eager"
    assert row.held_out is not None
    assert row.held_out >= 0.5
    assert row.held_out_slower == 0


def test_rules_share_the_runs_of_a_setting() -> None:
    table = rules()
    cells = {cell.key: len(mate().settings(cell)) for cell in mate().cells}
    for key, count in cells.items():
        assert (table.rows["cell"] == key).sum() <= count
    assert all(table.best[key].gain > 0 for key in cells)


def test_the_proof_launches_each_program_s_own_setting() -> None:
    requests: list[ComparisonRequest] = []

    def compare(request: ComparisonRequest) -> ComparisonOutcome:
        requests.append(request)
        raise BudgetTooSmall("test", code="test.budget")

    place: dict[str, Value] = {"ranks": 2, "cores": 1, "nodes": 2}
    terms = PairTerms(compare=compare)
    for space in (load_space("mate-cannon", None, place, {"size": 384}), _grid_space(place)):
        own = replace(program("a", held_out=False), space=space, layouts=LayoutMap(space))
        check_programs(BELOW_EAGER, [own])
        measure_pairs(DEFAULT, BELOW_EAGER, own, terms.plan(), terms, None)
    assert [request.first for request in requests] == [DEFAULT, DEFAULT]
    assert requests[0].second == Setting.parse("variant=mate,split=2")
    assert requests[1].second["odf"] == 8


def _grid_space(place: dict[str, Value]) -> Space:
    facts = {"cells_x": 64, "cells_y": 64, "cells_z": 64}
    return load_space("mate-cloverleaf3d", None, place, facts)


def test_a_rule_is_written_with_each_program_s_setting_and_is_published(cli: Cli) -> None:
    asked = cli("classwide", MATE, "--no-measure", "--json", "-")
    assert asked.code == 0, asked.err
    document = json.loads(asked.out)
    own = {row["app"]: row["setting"] for row in document["programs"]}
    assert own["cloverleaf3d"] == {"local_y": 8, "odf": 8, "variant": "mate"}
    words = ("publish", "--from", f"classwide:{document['id']}", "--format", "sh", "--dry-run")
    refusal = cli(*words)
    assert refusal.code == 2
    assert "[publish.doubtful]" in refusal.err
    shown = cli(*words, "--force")
    assert shown.code == 0, shown.err
    assert "MATE_FACTOR=8" in shown.out.replace("'", "")
    assert "MATE_CHUNK=" in shown.out
    assert "TPOD" not in shown.out


def test_cells_that_are_not_measured_yet_are_left_out() -> None:
    dataset = load("grid-layouts-testbed")
    keys = {cell.key for cell in dataset.measured_cells}
    assert keys
    assert set(layout_table(dataset, dataset.measured_cells).cells) == keys
    table, cells = class_of(dataset, (), ())
    assert {cell.key for cell in cells} == keys == set(table.cells)


@pytest.mark.parametrize(
    ("rule", "variant"),
    [
        ("factor=8,queue=shared", "mate"),
        ("factor=8", "mpi"),
        ("factor=8,barrier=neighbours", "tpod"),
    ],
    ids=["word", "runtime", "barrier"],
)
def test_what_no_runtime_reads_is_not_published(rule: str, variant: str) -> None:
    own = OwnSetting("a", None, 2, Setting.parse(f"variant={variant}"))
    result = ClasswideResult(
        status="recommended",
        setting=Setting.parse(rule),
        cluster="local",
        machine="0",
        mpi={},
        space="layouts",
        date="2026-11-27",
        method="direct",
        source="a",
        programs=(own,),
    )
    with refused(UsageError, "publish.layouts"):
        layout_content(result, "openmpi", 2)
