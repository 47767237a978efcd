"""Runs of different places are never compared; a block is measured on one place."""

from __future__ import annotations

import math

import pytest

from autotune.measurement.run_history import (
    CONFIRM,
    DEFAULT_PHASE,
    SEARCH,
    HistoryEntry,
    RunHistory,
)
from autotune.space import Setting
from autotune.study.race import race_evidence
from autotune.study.trial_store import Trial
from runner.types import RunRecord

ONE = Setting({"a": 1})


def entry(
    order: int, key: str, seconds: float, place: str, phase: str = "", trial: int | None = None
) -> HistoryEntry:
    record = RunRecord("ok", wall_s=seconds, place=place)
    return HistoryEntry(
        order, key, phase or (DEFAULT_PHASE if key == "default" else SEARCH), record, trial
    )


def test_a_ratio_is_that_to_the_default_on_the_same_place() -> None:
    history = RunHistory.of(
        [
            entry(0, "default", 1.0, "fast"),
            entry(1, "default", 3.0, "slow"),
            entry(2, "a=1", 0.8, "fast", trial=0),
            entry(3, "a=1", 2.4, "slow", trial=0),
            entry(4, "default", 1.0, "fast"),
            entry(5, "default", 3.0, "slow"),
            entry(6, "a=1", 1.0, "new", trial=0),
        ]
    )
    ratios = [history.ratio(e) for e in history.entries if e.key == "a=1"]
    assert ratios == [pytest.approx(0.8), pytest.approx(0.8), None]
    assert history.default_values() == [1.0, 1.0, 3.0, 3.0]
    history.place = "slow"
    assert history.default_values() == [3.0, 3.0]
    history.place = "new"
    assert history.default_values() == []


def test_the_race_knows_places_too() -> None:
    entries, order = [], 0
    for _ in range(4):
        for place, scale in (("fast", 1.0), ("slow", 3.0)):
            entries.append(entry(order, "default", scale, place))
            entries.append(entry(order + 1, "a=1", 0.8 * scale, place, trial=0))
            order += 2
    found = race_evidence(entries, [Trial(0, ONE, ONE, state="ok", estimate=0.8)])
    assert found.settings == [ONE]
    assert found.ratios[0] == pytest.approx([0.8] * 8)
    assert found.noise < 0.02


def test_a_block_that_was_begun_elsewhere_begins_anew() -> None:
    history = RunHistory()
    for order, (key, place) in enumerate([("default", "a"), ("a=1", "b"), ("default", "b")]):
        history.add(entry(order, key, 1.0, place, phase=f"{CONFIRM}:1"))
    block = history.blocks(f"{CONFIRM}:1")[0]
    assert {key: e.record.place for key, e in block.items()} == {"a=1": "b", "default": "b"}


def test_scatter_is_of_neighbours_a_slower_machine_is_not_noise() -> None:
    slower = [entry(n, "default", 1.1**n, "here") for n in range(12)]
    variance, freedom = RunHistory.of(slower, "here").default_scatter()
    assert freedom == 11
    assert variance == pytest.approx(math.log(1.1) ** 2 / 2)
    assert RunHistory.of(slower[:1], "here").default_scatter() == (0.0, 0)
    apart = [entry(n, "default", math.exp(0.1 * (-1) ** n), "here") for n in range(40)]
    # Each step is twice the deviation: 0.1 either way is a variance of 0.02 by neighbours.
    assert RunHistory.of(apart, "here").default_scatter()[0] == pytest.approx(0.02)
