"""Layouts: the words of a space, and back to its parameters exactly."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.config.app import load_app
from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting, Space, Value, load_space, space_names
from autotune.space.check import check_file
from autotune.space.layout import LayoutMap, ProgramLayout, process_grid
from autotune.space.vocabulary import VOCABULARY
from runner.programs.apps.common.grid import choose_grid
from tests.case_table import case_table
from tests.refusals import refused
from tests.space.libraries import NEW

INPUTS = {
    "mate": ("jacobi3d", "long"),
    "mate-cannon": ("cannon", "small"),
    "mate-cloverleaf3d": ("cloverleaf3d", "default"),
    "mate-flowcart": ("flowcart", "default"),
    "mate-jacobi3d": ("jacobi3d", "face"),
    "mate-minighost": ("minighost", "brief"),
    **{f"mate-nas-{name}": (f"nas-{name}", "W") for name in ("cg", "ft", "is", "lu", "mg")},
    "tarragon": ("jacobi3d", "face"),
    "tarragon-lu": ("sparse-lu", "poisson"),
    "tarragon-minighost": ("minighost", "many"),
    "tarragon-nw": ("needleman-wunsch", "default"),
    "tarragon-ring": ("ring", "large"),
    "tpod": ("jacobi3d", "face"),
    "tpod-jacobi3d": ("jacobi3d", "default"),
    "tpod-minighost": ("minighost", "brief"),
    "cab-minighost": ("minighost", "brief"),
    "hybrid-jacobi3d": ("jacobi3d", "default"),
    "minighost": ("minighost", "many"),
}
"""An application and an input of each space whose words use facts of it."""
PLACES: tuple[Mapping[str, Value], ...] = (
    {"ranks": 2, "cores": 1, "nodes": 2},
    {"ranks": 4, "cores": 4, "nodes": 1},
    {"ranks": 8, "cores": 4, "nodes": 2},
)


def _space(name: str, place: Mapping[str, Value]) -> Space:
    app, input_name = INPUTS.get(name, ("", ""))
    facts = load_app(app).input(input_name).facts if app else {}
    library = NEW if name.startswith(("openmpi", "null", "transports")) else None
    return load_space(name, library, place, facts)


OF_OTHER_LIBRARIES = {"impi", "mpich", "mpich-netmod"}
"""They have parameters of a library only, whose values it lists itself."""
SHIPPED = sorted(set(space_names()) - OF_OTHER_LIBRARIES)
MAPS = {
    (name, number): LayoutMap(_space(name, place))
    for name in SHIPPED
    for number, place in enumerate(PLACES)
}


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(sorted(MAPS)), st.integers(0, 2**32))
def test_a_layout_leads_back_to_its_setting(case: tuple[str, int], seed: int) -> None:
    layouts = MAPS[case]
    setting = layouts.space.sample(np.random.default_rng(seed))
    assert layouts.setting(layouts.layout(setting)) == setting


@case_table("name", [n for n in SHIPPED if MAPS[n, 0].words])
def test_every_combination_of_words_leads_back(name: str) -> None:
    layouts = MAPS[name, 0]
    every = list(layouts.settings(frozenset(layouts.words)))
    for setting in every[:: max(1, len(every) // 60)]:
        assert layouts.setting(layouts.layout(setting)) == setting


def test_the_default_is_flat_and_not_over_decomposed() -> None:
    words = MAPS["mate", 0].layout(DEFAULT).words
    assert words["model"] == "flat"
    assert (words["processes"], words["workers"], words["factor"]) == (1, 1, 1)
    assert words["chunk"] == 64 * 64 * 16
    assert "queue" not in words


def test_one_idea_has_one_word_in_three_runtimes() -> None:
    layouts = [
        MAPS["mate-jacobi3d", 0].layout(Setting.parse("variant=mate,odf=4,local_y=4")),
        MAPS["tarragon", 0].layout(Setting.parse("variant=tarragon,odf=4,local_y=4")),
        MAPS["tpod-jacobi3d", 0].layout(Setting.parse("variant=tpod,edge_y=16")),
    ]
    assert {layout.words["model"] for layout in layouts} == {"tasks"}
    assert {layout.words["factor"] for layout in layouts} == {4}
    assert {layout.words["cut_y"] for layout in layouts} == {4}
    assert [layout.words["chunk"] for layout in layouts] == [
        96 * 96 * 16 / 4,
        96 * 96 * 16 / 4,
        64 * 64 * 16 / 4,
    ]


def test_a_block_of_cannon_is_cut_by_sides_and_pieces() -> None:
    layouts = MAPS["mate-cannon", 0]
    words = layouts.layout(Setting.parse("variant=mate,side=6,split=2")).words
    assert (words["factor"], words["chunk"]) == (18, 64 * 64 * 8 / 2)


def test_in_one_process_no_message_has_a_size() -> None:
    layouts = MAPS["mate-jacobi3d", 1]
    assert "chunk" not in layouts.layout(Setting.parse("variant=mate,workers=4,odf=2")).words


def test_what_has_no_meaning_is_said() -> None:
    layouts = MAPS["tarragon-ring", 0]
    assert {"factor", "chunk", "cut_x"} <= layouts.absent.keys()
    assert all(layouts.absent.values())
    assert layouts.own["variant"]
    assert LayoutMap(load_space("mate", None, PLACES[0])).absent["chunk"]


def test_words_are_all_or_absent_or_of_no_parameter() -> None:
    for layouts in MAPS.values():
        assert {*layouts.words, *layouts.absent} == set(VOCABULARY)
        assert {*layouts.covered, *layouts.own} == set(layouts.space.names)


def test_the_settings_of_words_vary_only_what_is_behind_them() -> None:
    layouts = MAPS["mate-jacobi3d", 0]
    choices = list(layouts.settings(frozenset({"model", "factor"})))
    assert DEFAULT in choices
    assert {name for setting in choices for name in setting} == {"variant", "odf"}
    assert Setting.parse("variant=mate,odf=16") in choices


def test_a_layout_that_no_setting_has_is_refused() -> None:
    layouts = MAPS["mate-flowcart", 0]
    flat = layouts.layout(DEFAULT)
    with refused(UsageError, "layout.no_setting"):
        layouts.setting(ProgramLayout({**flat.words, "factor": 3}, flat.own))


def test_the_grid_of_processes_is_that_of_the_programs() -> None:
    for size in ((96, 96, 192), (2048, 64, 64), (12, 10, 8)):
        for processes in (1, 2, 6, 8, 12):
            assert process_grid(size, processes) == choose_grid(size, processes, 1)


OWN = """
[parameters.tiles]
target = "arg"
levels = [1, 2, 4]
default = 1

[parameters.mode]
target = "arg"
levels = ["plain", "async"]
default = "plain"
"""
WORDS = """
[layout.words]
model = { of = "mode", names = { plain = "flat" }, other = "tasks" }
factor = "tiles * tiles"
"""


def _own(tmp_path: Path, text: str) -> Space:
    file = tmp_path / "own.toml"
    file.write_text(text)
    return load_space(str(file))


def test_a_user_declares_words_in_the_file(tmp_path: Path) -> None:
    layouts = LayoutMap(_own(tmp_path, OWN + WORDS))
    layout = layouts.layout(Setting.parse("tiles=4,mode=async"))
    assert layout.words == {"model": "tasks", "factor": 16}
    assert layouts.setting(layout) == Setting.parse("tiles=4,mode=async")


def test_words_are_no_part_of_the_hash(tmp_path: Path) -> None:
    assert _own(tmp_path, OWN + WORDS).hash == _own(tmp_path, OWN).hash


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ('[layout.words]\nspeed = "tiles"', "config.invalid"),
        ('[layout.words]\nfactor = "tiles *"', "config.invalid"),
        ('[layout.words]\nfactor = "tile"', "space.invalid"),
        (
            '[layout.words]\nmodel = { of = "mode", names = { plain = "flatter" } }',
            "config.invalid",
        ),
        ('[layout.own]\nmodes = "unknown"', "space.invalid"),
    ],
    ids=["word", "expression", "name", "value", "own"],
)
def test_mistakes_are_refused(tmp_path: Path, words: str, code: str) -> None:
    with refused(UsageError, code):
        _own(tmp_path, OWN + words)


def test_two_settings_with_the_same_words_are_a_mistake(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(OWN + WORDS.replace("tiles * tiles", "(tiles > 1) + 1"))
    report = check_file(str(file), NEW)
    assert [finding.code for finding in report.errors] == ["layout.same"]
    file.write_text(OWN + WORDS)
    assert check_file(str(file), NEW).ok
