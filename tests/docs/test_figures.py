"""Every figure is drawn from stored data, and the index names figures, commands and commits."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.search.picture import draw
from benchmarks.search.tables import marks_of
from docs.builders.figures import DATA, FOLDER, figure_of
from tests.case_table import case_table

INDEX = FOLDER.parent / "results" / "figures.md"
PHOTOGRAPHS = {"session"}
"""Pictures of a terminal; they have no data."""
FILES = sorted(DATA.glob("*.json"))


def test_every_figure_has_its_data_and_a_row_of_the_index() -> None:
    drawn = {path.stem for path in FOLDER.glob("*.svg")} - PHOTOGRAPHS
    assert drawn == {path.stem for path in FILES}
    text = INDEX.read_text(encoding="utf-8")
    assert {name for name in drawn if f"../figures/{name}.svg)" not in text} == set()


@case_table("path", FILES)
def test_a_figure_is_drawn_from_its_data(path: Path) -> None:
    """Apart from digits that depend on the version of matplotlib."""
    number = re.compile(r"-?\d+\.?\d*")
    identifier = re.compile(r"#?[mph][0-9a-f]{10}")
    texts = [
        identifier.sub("ID", text)
        for text in (figure_of(path), (FOLDER / f"{path.stem}.svg").read_text(encoding="utf-8"))
    ]
    shapes = [number.sub("N", text) for text in texts]
    assert shapes[0] == shapes[1], "draw it anew: python -m docs.builders.figures"
    values = [[float(value) for value in number.findall(text)] for text in texts]
    assert values[0] == pytest.approx(values[1], abs=0.01)


def test_every_row_has_a_command_its_minutes_and_a_commit() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in INDEX.read_text(encoding="utf-8").splitlines()
        if line.startswith("| [")
    ]
    assert len(rows) > 20
    for _, command, minutes, commit in rows:
        assert command
        assert re.fullmatch(r"\d+( for each program)?|not noted", minutes), minutes
        assert re.fullmatch(r"[0-9a-f]{7,8}|named there", commit), commit


def test_a_short_search_has_a_column_and_is_drawn_from_its_json(tmp_path: Path) -> None:
    assert marks_of(5) == [5]
    assert marks_of(20) == [10, 15]
    row = {
        "slow": False,
        "share": {5: [0.5, 0.4, 0.5, 0.6]},
        "share_error": {5: 0.1},
        "share_by_s": {10: [0.25, 0.1]},
    }
    stored = json.loads(json.dumps({"auto": row}))
    first, second = draw(stored, tmp_path / "s.svg")
    assert (first.name, second.name) == ("s.svg", "s-seconds.svg")
    assert first.read_text() == draw({"auto": row}, tmp_path / "t.svg")[0].read_text()
