"""Writing and reading datasets: nothing changes on the way, and damage is told."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.datasets import Dataset, Landscape, load, read_shard
from autotune.datasets.card import to_toml
from autotune.datasets.recorded_space import recorded_space
from autotune.datasets.shards import SHARDS
from autotune.errors import UsageError
from tests.datasets.conftest import SPACE, make, planted
from tests.refusals import refused

TEXT = st.text(st.characters(blacklist_categories=("Cs",)), max_size=20)
VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
    | st.lists(TEXT, max_size=3),
    lambda inner: (
        st.dictionaries(TEXT, inner, max_size=3)
        | st.lists(st.dictionaries(TEXT, st.integers(0, 9), max_size=2), min_size=1, max_size=2)
    ),
    max_leaves=8,
)


@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_toml_is_read_back_as_it_was(data: dict[str, object]) -> None:
    import tomllib

    assert tomllib.loads(to_toml(data)) == data


def test_settings_space_and_runs_come_back(grid: Dataset) -> None:
    assert [cell.key for cell in grid.cells] == ["planted", "null"]
    assert grid.space("planted").hash == SPACE.hash
    settings = grid.settings("planted")
    assert settings[0].key == "default"
    assert set(settings) == set(SPACE.enumerate())
    runs = grid.runs("null")
    assert len(runs) == 3 * (8 + len(settings) - 1)
    assert len(grid.runs()) == 2 * len(runs)


def test_ratios_are_to_the_default_of_the_block(grid: Dataset) -> None:
    runs = grid.runs("planted")
    for (_, block), group in runs.groupby(["cell", "block"]):
        level = group.loc[group["setting"] == 0, "value_s"].median()
        good = group[group["state"] == "ok"]
        # One level for all of a block, near the median of its few runs of the default.
        levels = good["value_s"] / good["ratio"]
        assert np.allclose(levels, levels.iloc[0])
        assert levels.iloc[0] == pytest.approx(level, rel=0.04), block
    # Levels of the blocks differ by up to 4x; ratios do not know that.
    fast = runs[runs["setting"].map(lambda i: grid.settings("planted")[i].get("eager") == 65536)]
    assert fast.loc[fast["state"] == "ok", "ratio"].between(0.5, 0.72).all()
    stopped = runs[runs["state"] == "censored"]
    assert len(stopped)
    assert stopped["ratio"].between(2.7, 3.3).all()
    assert np.isinf(runs.loc[runs["state"] == "failed", "ratio"]).all()


def test_matrix_has_a_row_per_setting(grid: Dataset) -> None:
    matrix = grid.matrix("planted")
    assert list(matrix["index"]) == list(range(len(grid.settings("planted"))))
    assert set(matrix.loc[matrix["index"] > 0, "n"]) == {3}
    assert set(matrix["state"]) == {"ok", "censored", "failed"}


def test_inactive_parameters_make_settings_one(tmp_path: Path) -> None:
    found = make(tmp_path / "d", {"c": planted}, inactive_under={"default": ("high",)})
    settings, same = found.settings("c"), found.representatives("c")
    for index, first in enumerate(same):
        assert first <= index
        assert settings[index].without("high", "low") == settings[first].without("high", "low")
    matrix = found.matrix("c").set_index("index")
    alias = next(i for i, first in enumerate(same) if first != i)
    assert matrix.loc[alias, "ratio_median"] == matrix.loc[same[alias], "ratio_median"]
    assert not any("high" in setting for setting in Landscape(found, "c").settings)


@pytest.mark.parametrize("value", [-math.inf, math.inf, -1.0, 0.0, math.nan])
@pytest.mark.parametrize("name", ["value_s", "limit_s", "wall_s"])
def test_seconds_that_no_run_can_have_taken(grid: Dataset, name: str, value: float) -> None:
    """Half of the rows, as in a set of somebody else."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = next((grid.folder / SHARDS).glob("null.*"))
    frame = read_shard(path)
    frame.loc[::2, name] = value
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
    if name != "value_s" and (value == 0.0 or math.isnan(value)):
        read_shard(path)
        return
    with pytest.raises(UsageError) as caught:
        read_shard(path)
    assert caught.value.code == "dataset.damaged"


def test_a_truncated_shard_is_named(grid: Dataset) -> None:
    path = next((grid.folder / SHARDS).glob("null.*"))
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(UsageError, match=path.name):
        load(grid.folder).runs()
    with refused(UsageError, "dataset.damaged"):
        read_shard(path)


@pytest.mark.parametrize(
    ("old", "new", "code", "named"),
    [
        ("schema = 1", "schema = 2", "dataset.version", "= 2"),
        ('kind = "grid"', 'kind = "gird"', "config.invalid", "kind"),
        ('key = "null"', 'key = "planted"', "config.invalid", "planted"),
        ('app = "micro"', 'ap = "micro"', "config.invalid", "cells.0.app"),
    ],
)
def test_wrong_cards_are_refused(grid: Dataset, old: str, new: str, code: str, named: str) -> None:
    card = grid.folder / "card.toml"
    assert old in card.read_text()
    card.write_text(card.read_text().replace(old, new))
    with refused(UsageError, code) as caught:
        load(grid.folder)
    assert named in str(caught.value)


def test_shards_of_another_machine_are_refused(grid: Dataset) -> None:
    card = grid.folder / "card.toml"
    card.write_text(card.read_text().replace("0123456789abcdef", "fedcba9876543210"))
    with refused(UsageError, "dataset.mixed"):
        load(grid.folder).runs()


def test_settings_that_are_too_few_are_refused(grid: Dataset) -> None:
    (grid.folder / "settings" / "null.json").write_text("[{}]")
    with refused(UsageError, "dataset.settings"):
        load(grid.folder).runs("null")


def test_unknown_names_are_told(grid: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    with refused(UsageError, "dataset.cell_unknown"):
        grid.runs("nul")
    monkeypatch.chdir(grid.folder.parent)
    with refused(UsageError, "dataset.unknown"):
        load("grdi")


def test_a_block_whose_default_runs_were_unlucky_is_not_three_times_as_fast(grid: Dataset) -> None:
    """Some launches poll now and then and are three times as slow: most of a block's default runs
    may be of that kind by chance.  The other settings know how fast the block was."""
    from autotune.datasets import ratios

    runs = grid.runs("planted")
    before = ratios(runs)
    unlucky = runs.index[(runs["setting"] == 0) & (runs["block"] == 1)][:5]
    runs.loc[unlucky, "value_s"] *= 3
    others = (runs["block"] == 1) & (runs["setting"] != 0) & (runs["state"] == "ok")
    assert np.allclose(ratios(runs)[others], before[others], rtol=0.04)


def test_a_single_block_has_its_own_default_only(grid: Dataset) -> None:
    from autotune.datasets import ratios

    runs = grid.runs("null")
    one = runs[runs["block"] == 2]
    level = one.loc[one["setting"] == 0, "value_s"].median()
    assert np.allclose(ratios(one), one["value_s"] / level)


def test_a_censored_default_level_is_not_invented(grid: Dataset) -> None:
    """Without a default run that counts, a block has no ratios at all."""
    from autotune.datasets import ratios

    runs = grid.runs("null")
    broken = runs[(runs["setting"] != 0) | (runs["block"] != 1)]
    found = ratios(broken)
    assert found[broken["block"] == 1].isna().all()
    assert all(math.isfinite(ratio) for ratio in found[broken["block"] != 1])


def test_a_frozen_space_keeps_its_rules() -> None:
    text = recorded_space(SPACE)
    assert "(low <= high)" in text
    assert "(flag == 1)" in text
