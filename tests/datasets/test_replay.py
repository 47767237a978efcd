"""Replay: answers are runs, halves share none, the best and null cells are recognised."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from autotune.datasets import Dataset, Landscape, load
from autotune.datasets.shards import shard_path
from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting
from tests.datasets.conftest import make, nothing, planted
from tests.refusals import refused


def test_draws_are_the_runs_each_as_likely(grid: Dataset) -> None:
    land = Landscape(grid, "planted")
    setting = Setting({"eager": 65536})
    runs = grid.runs("planted")
    index = grid.settings("planted").index(setting)
    known = set(runs.loc[runs["setting"] == index, "ratio"])
    rng = np.random.default_rng(0)
    drawn = Counter(land.draw(setting, rng).ratio for _ in range(3000))
    assert set(drawn) == known
    assert min(drawn.values()) > 850
    assert {d.state for d in land.draws(setting)} == {"ok"}


def test_what_failed_or_was_stopped_says_so(grid: Dataset) -> None:
    land = Landscape(grid, "planted")
    rng = np.random.default_rng(0)
    failed = land.draw(Setting({"flag": 1, "high": 2}), rng)
    assert (failed.state, failed.ratio) == ("failed", float("inf"))
    stopped = land.draw(Setting({"eager": 1024, "flag": 1}), rng)
    assert stopped.state == "censored"
    assert 2.7 < stopped.ratio < 3.3


def test_equal_settings_have_one_answer(grid: Dataset) -> None:
    land = Landscape(grid, "planted")
    # "low" does nothing while flag is off, and 4096 is the default.
    assert land.draws(Setting({"low": 1, "eager": 4096})) == land.draws(DEFAULT)
    with refused(UsageError, "dataset.setting_unknown"):
        land.draw(Setting({"eager": 5}), np.random.default_rng(0))


def test_halves_share_no_run(grid: Dataset) -> None:
    land = Landscape(grid, "planted")
    half, held = land.halves(3)
    assert set(held) == set(half.settings) == set(land.settings)
    for setting in land.settings:
        if len(land.draws(setting)) == 3:
            mine = half.draws(setting)
            assert len(mine) == 2
            # Each run is on one side, once; two runs may well have the same ratio.
            ratios = sorted([*(draw.ratio for draw in mine), held[setting]])
            assert ratios == sorted(draw.ratio for draw in land.draws(setting))
    again, held_again = land.halves(3)
    assert held_again == held
    assert again.draws(DEFAULT) == half.draws(DEFAULT)
    assert any(land.halves(seed)[1] != held for seed in range(4))


def test_headroom_is_found_and_valued_without_luck(grid: Dataset) -> None:
    land = Landscape(grid, "planted")
    assert land.complete
    assert not land.null
    assert land.best.setting["eager"] == 65536
    assert land.best.ratio == pytest.approx(0.6, rel=0.06)
    assert all(setting["eager"] == 65536 for setting in land.winners)


def test_null_cells_are_null_nearly_always(tmp_path: Path) -> None:
    """5 % may be false; 12 cells with more than 3 false ones would be a defect (chance 0.2 %)."""
    effects = {f"c{i}": nothing for i in range(12)}
    found = make(tmp_path / "nulls", effects, noise=0.05, seed=5)
    lands = [Landscape(found, cell.key) for cell in found.cells]
    assert sum(not land.null for land in lands) <= 3
    # On the other half nothing is gained by the luck of the first.
    assert np.median([land.best.ratio for land in lands]) > 0.98


def test_levelled_nothing_is_faster_and_cliffs_stay(grid: Dataset) -> None:
    whole = Landscape(grid, "null")
    flat = whole.flatten()
    pool = flat.draws(DEFAULT)
    assert len(pool) > 0.8 * sum(len(whole.draws(s)) for s in whole.settings)
    level = [s for s in flat.settings if flat.draws(s) == pool]
    assert len(level) > 0.8 * len(flat.settings)
    cliffs = Landscape(grid, "planted").flatten()
    slow = Setting({"eager": 1024})
    assert cliffs.median(slow) > 1.5
    assert all(d.state == "failed" for d in cliffs.draws(Setting({"flag": 1, "high": 2})))
    best = Setting({"eager": 65536})
    assert cliffs.draws(best) == cliffs.draws(DEFAULT)


def test_headroom_is_seen_where_some_launches_are_three_times_as_slow(tmp_path: Path) -> None:
    """The pooled variance hides it from Student; ranks of all that share the level do not care."""
    found = make(tmp_path / "two", {"gain": planted, "null": nothing}, noise=0.02, seed=3)
    for cell, null in (("gain", False), ("null", True)):
        for block in range(3):
            path = shard_path(found.folder, cell, block)
            frame = pd.read_parquet(path)
            slow = np.random.default_rng([block, null]).random(len(frame)) < 0.2
            frame.loc[slow & (frame["state"] == "ok"), "value_s"] *= 3
            frame.to_parquet(path)
        land = Landscape(load(found.folder), cell)
        assert land.null is null
        assert not land.winners


def test_an_incomplete_grid_says_so(grid: Dataset) -> None:
    shard_path(grid.folder, "null", 2).unlink()
    assert not Landscape(load(grid.folder), "null").complete
    assert Landscape(load(grid.folder), "planted").complete


def test_explorations_are_not_replayed(tmp_path: Path) -> None:
    found = make(tmp_path / "e", {"c": planted}, kind="explore")
    with refused(UsageError, "dataset.not_a_grid"):
        Landscape(found, "c")
