"""The table of layouts: time and core-seconds from stored runs, and what is Pareto-optimal."""

from __future__ import annotations

import pytest

from autotune.api.tried_layouts import require_layouts, tried_layouts
from autotune.errors import UsageError
from autotune.measurement.run_history import DEFAULT_KEY, HistoryEntry, RunHistory
from autotune.space import Space, load_space
from autotune.study.study_warnings import unseen_threads
from autotune.targets.layout import Layout
from autotune.terminal.layouts import print_layouts
from autotune.wording import Metric
from runner.types import ReadBack, RunRecord, RunState
from tests.refusals import refused

CORES = 4


def space() -> Space:
    return load_space("hybrid", facts={"ranks": CORES, "cores": CORES, "nodes": 1})


def history(*runs: tuple[str, float, RunState]) -> RunHistory:
    """A default run of one second stands before each of these runs."""
    entries = []
    for n, (key, seconds, state) in enumerate(runs):
        entries.append(HistoryEntry(2 * n, DEFAULT_KEY, "default", RunRecord("ok", wall_s=1.0)))
        record = RunRecord(state, wall_s=seconds)
        entries.append(HistoryEntry(2 * n + 1, key, "search", record))
    return RunHistory.of(entries)


def test_each_layout_stands_once_with_its_fastest_setting() -> None:
    rows = tried_layouts(
        history(
            ("threads=2", 0.8, "ok"),
            ("OMP_PROC_BIND=close,threads=2", 0.5, "ok"),
            ("processes=1", 1.5, "ok"),
            ("processes=1", 1.7, "ok"),
            ("processes=2,threads=1", 1.2, "ok"),
            ("threads=4", 1.1, "ok"),
        ),
        space(),
        CORES,
    )
    found = [(r.layout.ranks, r.layout.threads, r.time_s, r.core_seconds, r.runs) for r in rows]
    assert [tuple(map(pytest.approx, row)) for row in found] == [
        (2, 2, 0.5, 2.0, 1),
        (4, 1, 1.0, 4.0, 6),
        (1, 4, 1.1, 4.4, 1),
        (2, 1, 1.2, 2.4, 1),
        (1, 1, 1.6, 1.6, 2),
    ]
    assert rows[0].setting.key == "OMP_PROC_BIND=close,threads=2"
    assert [r.layout for r in rows if r.pareto] == [Layout(2, threads=2), Layout(1)]
    assert rows[-1].row["core_s"] == pytest.approx(1.6)


def test_runs_that_do_not_count_give_no_layout() -> None:
    runs = history(("threads=2", 0.1, "unverified"), ("threads=4", 0.1, "foreign_load"))
    assert [r.layout for r in tried_layouts(runs, space(), CORES)] == [Layout(4)]
    assert tried_layouts(RunHistory(), space(), CORES) == []


def test_the_table_fits_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    key = "OMP_PLACES=threads,OMP_PROC_BIND=spread,OMP_WAIT_POLICY=passive,threads=2"
    rows = tried_layouts(history((key, 123.456, "ok")), space(), CORES)
    print_layouts(rows, Metric())
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    [line] = (line for line in lines if "OMP_PLACES=threads" in line)
    assert " 2 " in line.partition("OMP_PLACES=threads")[2]
    assert not [line for line in lines if "OMP_WAIT_POLICY" in line]


def test_a_program_without_openmp_is_told() -> None:
    runs = history(("threads=2", 1.5, "ok"), ("threads=4", 2.5, "ok"))
    for entry in runs.entries:
        if entry.key != DEFAULT_KEY:
            entry.record.read_back["threads"] = ReadBack("not observable", "2")
    assert [note.code for note in unseen_threads(runs)] == ["threads.not_seen"]
    runs.entries[-1].record.read_back["threads"] = ReadBack("in force", "4", "4")
    assert unseen_threads(runs) == []
    assert unseen_threads(history(("processes=1", 2.0, "ok"))) == []


def test_a_space_without_layouts_is_refused() -> None:
    require_layouts(space())
    with refused(UsageError, "space.no_layouts"):
        require_layouts(load_space("null"))
