"""A metric that says the opposite of the wall time: a rate that is read as a time, or a start."""

from __future__ import annotations

import random

import pytest

from autotune.measurement.run_history import HistoryEntry, RunHistory
from autotune.space import Setting
from autotune.study.objections import findings_on
from runner.types import RunRecord
from tests.case_table import case_table

SETTING = Setting({"btl": "tcp"})
RUNS = 25


def history(
    seed: int,
    work: tuple[float, float],
    start: tuple[float, float],
    *,
    noise: float = 0.02,
    start_noise: float = 0.02,
    kind: str = "time",
    size: float = 1.0,
    seen: bool = False,
) -> RunHistory:
    """Interleaved runs of the default and of one setting.

    ``work`` and ``start`` in seconds, of each; ``kind``: what the program prints of its work
    ("time", "rate", or "declared": a rate that was given as one); ``size``: the rate's numerator;
    ``seen``: the end of MPI_Init is known.
    """
    draw = random.Random(seed)
    entries = []
    for order in range(2 * RUNS):
        side = order % 2
        spent = work[side] * draw.lognormvariate(0, noise)
        begun = start[side] * draw.lognormvariate(0, start_noise)
        record = RunRecord(
            "ok",
            wall_s=spent + begun,
            metric_s=spent if kind in ("time", "declared time") else size / spent,
            metric_rate=kind == "declared time",
            init_s=0.9 * begun if seen else None,
        )
        if kind == "declared time":
            record.metric_s = 1 / spent
        key = SETTING.key if side else "default"
        entries.append(HistoryEntry(order, key, "confirm:0", record, block=order // 2))
    return RunHistory.of(entries)


def stops(runs: RunHistory) -> list[bool]:
    found = [
        one for one in findings_on(runs, SETTING) if one.note.code == "metric.contradicts_wall"
    ]
    return [one.stops for one in found]


@case_table("slower", [1.05, 1.3, 2.9])
@case_table("size", [0.3, 3.0, 100.0])
def test_a_rate_read_as_a_time_stops(slower: float, size: float) -> None:
    """The rate is below or above the run time; the setting that it prefers is the slower one."""
    for seed in range(20):
        assert stops(history(seed, (3.0, 3.0 * slower), (0.3, 0.3), kind="rate", size=size)) == [
            True
        ]


def test_a_time_declared_as_a_rate_stops() -> None:
    for seed in range(20):
        assert stops(history(seed, (3.0, 4.0), (0.3, 0.3), kind="declared time")) == [True]


def test_a_faster_setting_has_no_finding() -> None:
    for seed in range(20):
        assert stops(history(seed, (3.0, 2.5), (0.3, 0.3))) == []
        assert stops(history(seed, (50e-6, 40e-6), (0.5, 0.5), start_noise=0.3)) == []
        assert stops(history(seed, (2.5, 2.0), (0.3, 0.5), start_noise=0.3)) == []


@pytest.mark.parametrize(
    ("work", "start"), [((50e-6, 40e-6), (0.5, 0.7)), ((0.3, 0.2), (0.5, 0.8))]
)
def test_a_longer_start_is_a_note(work: tuple[float, float], start: tuple[float, float]) -> None:
    """The setting is faster in what is measured, and its start costs more: no stop."""
    for seed in range(50):
        assert True not in stops(history(seed, work, start, start_noise=0.1))
    assert stops(history(0, work, start)) == [False]


def test_what_a_start_cannot_explain_stops() -> None:
    """The runs of one setting do not vary, so only the size of the difference shows it."""
    found = history(0, (3.0, 9.0), (0.3, 0.3), noise=0.0, kind="rate", size=9.0)
    assert stops(found) == [True]
    assert stops(history(0, (3.0, 3.2), (1.0, 1.0), noise=0.0, kind="rate", size=9.0)) == [False]


def test_few_runs_say_nothing() -> None:
    runs = history(0, (3.0, 9.0), (0.3, 0.3), kind="rate")
    assert stops(RunHistory.of(runs.entries[:6])) == []


def test_equal_settings_are_never_stopped() -> None:
    for seed in range(200):
        assert stops(history(seed, (0.01, 0.01), (0.5, 0.5), start_noise=0.3)) == []


def test_a_rate_of_a_short_program_stops_where_the_start_was_seen() -> None:
    """0.2 s of work after a start of 0.4 s that varies by a fifth."""
    words = {"start_noise": 0.2, "kind": "rate", "size": 3.0}
    for seed in range(50):
        assert stops(history(seed, (0.2, 0.3), (0.4, 0.4), seen=True, **words)) in ([True], [])
    seen = [stops(history(s, (0.2, 0.58), (0.4, 0.4), seen=True, **words)) for s in range(50)]
    assert seen == [[True]] * 50


def test_a_longer_start_that_was_seen_is_a_note() -> None:
    for seed in range(50):
        found = history(seed, (0.3, 0.28), (0.5, 0.8), start_noise=0.1, seen=True)
        assert stops(found) == [False]
