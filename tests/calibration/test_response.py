"""Response tables: between measured sizes, as files, and with their noise."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.calibration.points import Point
from autotune.calibration.response import (
    CALIBRATIONS,
    Calibration,
    Level,
    Response,
    ResponseTable,
    hours_between,
    merge_calibrations,
    pool_logs,
)
from autotune.errors import UsageError
from autotune.space import Setting
from tests.calibration.machines import EAGER, FLAGS, calibration, table
from tests.case_table import case_table

LIMIT, GET = Setting({EAGER: 8192}), Setting({FLAGS: "get"})


def small() -> ResponseTable:
    default = {Point("bcast", s): Level(us, 0.01) for s, us in ((8, 1.0), (128, 4.0), (1024, 8.0))}
    default[Point("barrier", 0)] = Level(0.5, 0.01)
    responses = {LIMIT: {Point("bcast", 8): Response(-0.2, 0.01, 3),
                         Point("bcast", 128): Response(0.2, 0.02, 3)}}  # fmt: skip
    return ResponseTable(2, 1, 2, default, responses)


def test_times_between_sizes() -> None:
    found = small()
    assert found.us("bcast", 8) == pytest.approx(1.0)
    assert found.us("bcast", 32) == pytest.approx(2.0)
    assert found.us("bcast", 1) == pytest.approx(1.0)  # The latency is the same below.
    assert found.us("bcast", 4096) == pytest.approx(32.0)  # And bytes count above.
    assert found.us("barrier", 0) == 0.5
    assert found.us("scatter", 8) is None


def test_responses_between_sizes_are_less_certain() -> None:
    found = small()
    middle = found.response(LIMIT, "bcast", 32)
    assert middle is not None
    assert middle.log == pytest.approx(0.0)
    assert middle.sd == pytest.approx(math.hypot(0.02, 0.1))
    assert found.response(LIMIT, "bcast", 8) == Response(-0.2, 0.01, 3)
    assert found.response(LIMIT, "bcast", 256) is not None  # Twice the largest, no more.
    assert found.response(LIMIT, "bcast", 300) is None
    assert found.response(GET, "bcast", 8) is None
    assert found.response(LIMIT, "reduce", 8) is None


def test_small_responses_are_drawn_towards_nothing() -> None:
    assert Response(-0.02, 0.03, 1).shrunk == 0.0
    assert Response(-0.5, 0.05, 1).shrunk == pytest.approx(-0.495)
    assert Response(0.0, 0.1, 1).shrunk == 0.0


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=5), st.floats(0, 0.3))
def test_a_pooled_response_lies_among_its_runs(logs: list[float], scatter: float) -> None:
    found = pool_logs(logs, scatter, scatter / 2)
    assert min(logs) - 1e-12 <= found.log <= max(logs) + 1e-12
    assert found.sd >= scatter / 2
    assert found.runs == len(logs)


def test_a_machine_that_changes_its_state_is_not_averaged_away() -> None:
    """Noise shrinks with the number of runs; a state that one run in eight meets does not."""
    quiet = pool_logs([-0.3, -0.31, -0.29] * 4, 0.01, 0.005)
    assert quiet.sd < 0.01
    changing = pool_logs([-0.3] * 7 + [1.5], 0.01, 0.005)
    assert changing.log == pytest.approx(-0.075)
    assert changing.sd > 0.6


def test_the_table_of_the_nearest_place() -> None:
    two, four, across = (table([], ranks=2), table([], ranks=4), table([], ranks=2, nodes=2))
    found = calibration(two, four, across)
    assert found.table(2, 1) is two
    assert found.table(16, 1) is four
    assert found.table(16, 8) is across
    assert calibration(two).table(2, 2) is None


def test_a_calibration_is_the_same_after_its_file(tmp_path: Path) -> None:
    found = calibration(table([LIMIT, GET]), small())
    path = CALIBRATIONS.save(found, tmp_path)
    again = CALIBRATIONS.find(found.id, tmp_path)
    assert again.to_json() == found.to_json()
    assert again.id == found.id == path.stem
    assert again.tables[1].responses == small().responses


@case_table(
    "change",
    [
        lambda data: data["tables"][0]["default"][0].__setitem__(2, -1.0),
        lambda data: data["tables"][0]["default"][0].__setitem__(2, float("nan")),
        lambda data: data["tables"][0].__setitem__("ranks", 0),
        lambda data: data["tables"][0].pop("nodes"),
        lambda data: data["tables"][0]["responses"][0]["points"][0].pop(),
        lambda data: data.__setitem__("extra", 1),
        lambda data: data.__setitem__("cluster", "other"),
    ],
)
def test_a_damaged_calibration_is_refused(change: Any) -> None:
    data = json.loads(json.dumps(calibration(small()).to_json()))
    change(data)
    with pytest.raises(UsageError, match=r"x\.json"):
        CALIBRATIONS.from_json(data, "x.json")


def at(date: str, log: float, sd: float = 0.05, runs: int = 8) -> Calibration:
    """A calibration of one setting at one time."""
    point = Point("pingpong", 4096)
    responses = {FAST: {point: Response(log, sd, runs)}}
    own = ResponseTable(2, 1, 2, {point: Level(10.0, 0.01)}, responses)
    return Calibration("local", "m", {}, date, 1, 1.0, 1, 1, (own,))


FAST = Setting({"btl_sm_eager_limit": 65536})


def test_calibrations_of_several_times_count_together() -> None:
    first, second = at("2026-11-25T09:00:00", -1.0), at("2026-11-25T11:00:00", 0.4, runs=3)
    assert hours_between([first, second]) == 2.0
    assert merge_calibrations([first]) is first
    both = merge_calibrations([first, second])
    assert both.date == second.date
    found = both.tables[0].responses[FAST][Point("pingpong", 4096)]
    assert found.log == pytest.approx(-0.3)
    assert found.sd > 0.9  # A program meets either.
    assert found.runs == 11
    # What was seen at one time only does not count as often measured.
    other = at("2026-11-25T12:00:00", -1.0)
    elsewhere = dataclasses.replace(
        other, tables=(dataclasses.replace(other.tables[0], responses={}),)
    )
    alone = (
        merge_calibrations([first, elsewhere]).tables[0].responses[FAST][Point("pingpong", 4096)]
    )
    assert alone.runs == 1
    with pytest.raises(ValueError):
        merge_calibrations([])
