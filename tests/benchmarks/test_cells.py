"""Cells of a long measurement: what is kept, what goes on, and the time that is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.errors import WorkError
from benchmarks.harness.bench import Busy, RunLog
from benchmarks.harness.cells import Cell, Cells, Row
from runner.types import RunRecord

CELLS = [Cell("a", 10.0, "near"), Cell("b", 10.0, "near"), Cell("c", 20.0, "far")]


def cells(folder: Path) -> Cells:
    return Cells(folder, CELLS, decided=lambda row: row.get("status") == "ok")


def test_the_same_command_goes_on_with_the_open_cells(tmp_path: Path) -> None:
    measured = []

    def first(cell: Cell) -> Row:
        if cell.name == "c":
            raise KeyboardInterrupt
        measured.append(cell.name)
        return {"name": cell.name, "status": "ok" if cell.name == "a" else "noisy"}

    with pytest.raises(KeyboardInterrupt):
        cells(tmp_path / "new").complete(first, str)
    again = cells(tmp_path / "new")
    assert [cell.name for cell in again.open()] == ["b", "c"]

    def second(cell: Cell) -> Row:
        measured.append(cell.name)
        return {"name": cell.name, "status": "ok"}

    rows = again.complete(second, str)
    assert [row["name"] for row in rows] == ["a", "b", "c"]
    assert measured == ["a", "b", "b", "c"]
    assert again.open() == []


def test_the_time_that_is_left_follows_the_pace_of_the_group(tmp_path: Path) -> None:
    every = cells(tmp_path)
    assert every.left_s() == pytest.approx(40.0)
    for name, wall_s in (("a", 30.0), ("c", None)):
        (tmp_path / f"{name}.json").write_text(f'{{"status": "ok", "wall_s": {wall_s or "null"}}}')
    assert every.left_s() == pytest.approx(30.0)
    (tmp_path / "c.json").unlink()
    # No cell of its group has a time: the pace of all.
    assert every.left_s() == pytest.approx(30.0 + 60.0)


def test_a_setting_that_failed_is_not_tried_again(tmp_path: Path) -> None:
    file = tmp_path / "runs"

    def fails() -> RunRecord:
        raise WorkError("wrong result", code="benchmark.fails")

    def busy() -> RunRecord:
        raise Busy("busy", code="benchmark.busy")

    log = RunLog(file, {})
    for place, run in (("a", fails), ("b", busy)):
        with pytest.raises(WorkError):
            log.run(place, run, keeps_failure=True)
    with pytest.raises(WorkError):
        log.run("c", fails)
    again, record = RunLog(file, {}), RunRecord("ok", wall_s=1.0)
    with pytest.raises(WorkError):
        again.run("a", lambda: record, keeps_failure=True)
    assert [again.run(place, lambda: record, True).wall_s for place in "bc"] == [1.0, 1.0]  # data
