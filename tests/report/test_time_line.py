"""The time line of a MATE run: recorded by the runtime, read, summed up and drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.cli import main
from autotune.errors import UsageError
from autotune.report.time_line import (
    BETWEEN,
    BINS,
    WAITING,
    TimeLine,
    _columns,
    rank_messages,
    read_time_line,
    region_times,
    time_line_picture,
    time_line_sections,
    worker_times,
)
from runner.runtimes import mate
from runner.runtimes.core import core as native
from runner.runtimes.mate.log import Lapse
from runner.runtimes.mate.time_line import joined
from tests.refusals import refused

LINE: dict[str, Any] = {
    "schema": "mate-time-line-1",
    "processes": [
        {
            "workers": 2,
            "lapses": [[0, 0, 0.0, 3.0], [0, 1, 3.0, 4.0], [1, -1, 0.0, 4.0]],
            "ranks": [0, 1],
            "regions": ["g.a", "g.b"],
            "tasks": [[0, 0, 0, 0.0, 1.0], [0, 0, 1, 1.0, 3.0], [0, 1, 0, 3.0, 4.0]],
            "messages": [[0, 1, 1, 0], [0, 2, 3, 4096]],
        },
        {"workers": 1, "lapses": [[0, 2, 1.0, 3.0]], "ranks": [2], "cut": True},
    ],
}


class Neighbor:
    """A rank of a ring: it sends to the right, and receives from the left."""

    def __init__(self, ctx: Any) -> None:
        self.ctx = ctx
        self.sent, self.received = np.zeros(4), np.zeros(4)
        self.left, self.right = (ctx.rank - 1) % ctx.size, (ctx.rank + 1) % ctx.size


def ring() -> mate.Graph:
    graph = mate.Graph("ring")

    @graph.region("turn", [], compiled=True)
    def turn(state: Any, i: int) -> None:
        state.ctx.irecv(state.received, state.left, 0)
        state.ctx.isend(state.sent, state.right, 0)

    @graph.region("rest", ["turn*"])
    def rest(state: Any, i: int) -> None:
        """A region of Python code."""

    return graph


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


def test_regions_and_messages_are_summed_up() -> None:
    line = TimeLine.model_validate(LINE)
    rows = [(r.name, r.executions, r.total_s, r.longest_s, r.share) for r in region_times(line)]
    assert rows == [("g.a", 2, 2.0, 1.0, 0.5), ("g.b", 1, 2.0, 2.0, 0.5)]
    partners = rank_messages(line)
    assert partners is not None
    assert partners.nodes == (0, 0, 1)
    assert partners.far(partners.nodes) == pytest.approx(0.75)
    workers, messages = time_line_sections(line)
    assert [len(table.rows) for table in workers.tables] == [3, 2]
    assert len(workers.words) == 2  # The second one says that recording was full.
    assert messages.tables[0].rows[0] == ("0 to 2", "0 to 1", "3", "4 KiB", "100%")
    old = {key: LINE["processes"][0][key] for key in ("workers", "lapses")}
    assert len(time_line_sections(TimeLine.model_validate(LINE | {"processes": [old]}))) == 1


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

    graph = ring()

    async def program(ctx: Any) -> None:
        await ctx.execute(graph, 5, state=Neighbor(ctx))
        await ctx.barrier()
        own = ctx.isend(np.zeros(2), ctx.rank, 1)
        await ctx.recv(np.zeros(2), ctx.rank, 1)
        await ctx.wait(own)

    config = mate.Config(ranks_per_process=3, core=core, time_line=str(file))
    mate.run(program, config)
    line = read_time_line(file)
    (part,) = line.processes
    assert part.workers == 1
    assert not part.cut
    assert {row.name: row.executions for row in region_times(line)} == {
        "ring.turn": 15,
        "ring.rest": 15,
    }
    assert all(0 <= task[3] <= task[4] for task in part.tasks)
    assert part.messages == [
        (0, 0, 1, 16), (0, 1, 5, 160), (1, 1, 1, 16), (1, 2, 5, 160), (2, 0, 5, 160), (2, 2, 1, 16),
    ]  # fmt: skip
    assert {row[1] for row in part.lapses} >= {0, 1, 2}
    assert all(-1e-3 <= row[2] <= row[3] for row in part.lapses)
    assert main(["mate", "timeline", str(file), "--picture", str(picture)]) == 0
    assert "worker" in capfd.readouterr().out
    assert picture.read_text().startswith("<svg")


def test_a_long_run_is_recorded_up_to_where_the_room_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that is checked must be complete: there the run fails."""
    monkeypatch.setattr(native, "LOG_EVENTS", 64)
    file = tmp_path / "line.json"

    async def program(ctx: Any) -> None:
        graph = mate.Graph("empty")
        graph.region("body")(lambda state, i: None)
        await ctx.execute(graph, 100)

    mate.run(program, mate.Config(core="native", time_line=str(file)))
    (part,) = read_time_line(file).processes
    assert part.cut
    assert 0 < len(part.tasks) < 64
    with refused(mate.MateError, "mate.message"):
        mate.run(program, mate.Config(core="native"), log=mate.EventLog())


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
    for changes, code in (
        ({"tasks": [[0, 0, 7, 0.0, 1.0]]}, "config.invalid"),
        ({"messages": [[0, 9, 1, 8]]}, "time_line.unreadable"),
        ({"ranks": [0, 5]}, "time_line.unreadable"),
    ):
        process = LINE["processes"][0] | changes
        file.write_text(json.dumps(LINE | {"processes": [process, LINE["processes"][1]]}))
        with refused(UsageError, code):
            rank_messages(read_time_line(file))


def test_a_time_line_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    async def program(ctx: Any) -> None:
        """Do nothing."""

    config = mate.Config(core="python", time_line=str(tmp_path / "missing" / "line.json"))
    with refused(mate.ConfigError, "mate.option"):
        mate.run(program, config)
