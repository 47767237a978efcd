"""Words of layouts in datasets: of the recorded space itself, or of the shipped space."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from autotune.config.app import load_app
from autotune.datasets import load, narrow_space
from autotune.datasets.recorded_layout import with_words
from autotune.datasets.recorded_space import recorded_name, recorded_space, space_of_record
from autotune.space import DEFAULT, Setting, load_space
from autotune.space.layout import LayoutMap

PLACE = {"ranks": 2, "cores": 2, "nodes": 2}


def test_a_new_recording_holds_its_words(tmp_path: Path) -> None:
    facts = load_app("minighost").input("brief").facts
    whole = load_space("tpod-minighost", None, PLACE, facts)
    narrow = narrow_space(whole, {"variant": ["tpod"], "edge_y": [16, 24]}, "plan")
    file = tmp_path / "space.toml"
    file.write_text(recorded_space(narrow))
    assert recorded_name(file) == "tpod-minighost"
    again = space_of_record(file, narrow.facts, "again")
    assert again.hash == narrow.hash
    layouts, original = LayoutMap(again), LayoutMap(whole)
    assert layouts.words == original.words
    for setting in again.enumerate():
        words = layouts.layout(setting).words
        # A parameter that was not varied has the word of its default, even where it does nothing.
        assert original.layout(setting).words.items() <= words.items()
        assert words.keys() - original.layout(setting).words <= {"queue"}
        assert layouts.setting(layouts.layout(setting)) == setting


def test_an_old_recording_gets_the_words_of_its_program_s_form_of_the_space() -> None:
    dataset = load("grid-tpod-testbed")
    cell = dataset.cell("tb-tpod-1ms")
    assert not dataset.space(cell).layout.words
    assert dataset.space_name(cell) == "tpod"
    words = dataset.layouts(cell).layout(Setting.parse("variant=tpod,edge_y=16")).words
    assert words["chunk"] == 96 * 96 * 5 * 8 / 6


def test_cells_of_unknown_programs_and_spaces_have_no_words() -> None:
    dataset = load("grid-tpod-testbed")
    cell = dataset.cell("tb-tpod-1ms")
    space = dataset.space(cell)
    stranger = cell.model_copy(update={"app": "mine"})
    assert not LayoutMap(with_words(space, stranger, "tpod")).words
    assert not LayoutMap(with_words(space, cell, "mine")).words
    assert LayoutMap(with_words(space, cell, "mine")).layout(DEFAULT).own == DEFAULT


def test_every_setting_of_every_recorded_layout_follows_from_its_words() -> None:
    for name in ("grid-mate-testbed", "grid-tarragon-testbed", "grid-tpod-node"):
        dataset = load(name)
        for cell in dataset.cells:
            layouts = dataset.layouts(cell)
            for setting in map(layouts.space.canonical, dataset.settings(cell)[::3]):
                assert layouts.setting(layouts.layout(setting)) == setting


def test_words_are_no_part_of_the_recorded_space_s_hash() -> None:
    dataset = load("grid-mate-testbed")
    cell = dataset.cell("tb-mate-cannon")
    space = dataset.layouts(cell).space
    assert space.layout.words
    assert replace(space, layout=dataset.space(cell).layout).hash == space.hash
