"""The time line of a MATE run: recorded by the runtime, read, summed up and drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autotune.cli import main
from autotune.errors import UsageError
from autotune.report.time_line import (
    BETWEEN,
    BINS,
    WAITING,
    TimeLine,
    _columns,
    read_time_line,
    time_line_picture,
    worker_times,
)
from runner.runtimes import mate
from runner.runtimes.mate.log import Lapse
from runner.runtimes.mate.time_line import joined
from tests.refusals import refused

LINE: dict[str, Any] = {
    "schema": "mate-time-line-1",
    "processes": [
        {"workers": 2, "lapses": [[0, 0, 0.0, 3.0], [0, 1, 3.0, 4.0], [1, -1, 0.0, 4.0]]},
        {"workers": 1, "lapses": [[0, 2, 1.0, 3.0]]},
    ],
}


def test_lapses_of_one_rank_are_joined() -> None:
    lapses = [
        Lapse(1, 5, 20.0, 21.0),
        Lapse(0, 4, 10.0, 11.0),
        Lapse(0, 4, 11.0, 12.0),
        Lapse(0, -1, 12.0, 15.0),
        Lapse(0, 4, 15.0, 16.0),
    ]
    assert joined(lapses, 10.0) == [
        [0, 4, 0.0, 2.0],
        [0, -1, 2.0, 5.0],
        [0, 4, 5.0, 6.0],
        [1, 5, 10.0, 11.0],
    ]


def test_each_worker_is_summed_up() -> None:
    rows = worker_times(TimeLine.model_validate(LINE))
    assert [(r.process, r.worker, r.ranks) for r in rows] == [
        (0, 0, (0, 1)),
        (0, 1, ()),
        (1, 0, (2,)),
    ]
    assert [(r.runs_s, r.waits_s, r.between_s) for r in rows] == [
        (4.0, 0.0, 0.0),
        (0.0, 4.0, 0.0),
        (2.0, 0.0, 2.0),
    ]


def test_a_column_shows_what_took_most_of_its_time() -> None:
    columns = _columns([(0, 7, 0.0, 1.0), (0, -1, 1.0, 2.0), (0, 8, 3.0, 4.0)], 4.0)
    quarter = BINS // 4
    assert set(columns[:quarter]) == {7}
    assert set(columns[quarter : 2 * quarter]) == {WAITING}
    assert set(columns[2 * quarter : 3 * quarter]) == {BETWEEN}
    assert set(columns[3 * quarter :]) == {8}


def test_a_picture_has_a_row_for_each_worker() -> None:
    svg = time_line_picture(TimeLine.model_validate(LINE), "who")
    assert svg.count("worker 0") == 2
    assert "process 0, worker 1" in svg
    assert svg == time_line_picture(TimeLine.model_validate(LINE), "who")


@pytest.mark.parametrize("core", ["python", pytest.param("native", marks=pytest.mark.slow)])
def test_a_run_is_recorded_and_shown(
    core: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file, picture = tmp_path / "line.json", tmp_path / "line.svg"

    async def program(ctx: Any) -> None:
        await ctx.barrier()

    config = mate.Config(ranks_per_process=3, core=core, time_line=str(file))
    mate.run(program, config)
    (part,) = read_time_line(file).processes
    assert part.workers == 1
    assert {row[1] for row in part.lapses} >= {0, 1, 2}
    assert all(-1e-3 <= row[2] <= row[3] for row in part.lapses)
    assert main(["mate", "timeline", str(file), "--picture", str(picture)]) == 0
    assert "worker" in capfd.readouterr().out
    assert picture.read_text().startswith("<svg")


def test_a_wrong_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "line.json"
    with refused(UsageError, "time_line.unreadable"):
        read_time_line(file)
    file.write_text("{")
    with refused(UsageError, "time_line.unreadable"):
        read_time_line(file)
    file.write_text(json.dumps(LINE | {"schema": "another"}))
    with refused(UsageError, "config.invalid"):
        read_time_line(file)


def test_a_time_line_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    async def program(ctx: Any) -> None:
        """Do nothing."""

    config = mate.Config(core="python", time_line=str(tmp_path / "missing" / "line.json"))
    with refused(mate.ConfigError, "mate.option"):
        mate.run(program, config)
