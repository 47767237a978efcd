"""Landscapes with interactions: the same for ever, their rules, and the score against random."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting
from benchmarks.search import interaction_table
from benchmarks.search.interactions import (
    FAMILIES,
    LANDSCAPES,
    KnownLand,
    landscape,
    recorded,
    recorded_names,
)
from tests.case_table import case_table
from tests.refusals import refused

DIGESTS = {
    "decomposition": ("a15062bff5f4e86d", "82fbba08c4179da6"),
    "tiles": ("2bb02d12d85a002f", "869184ac10f5178f"),
    "tangled": ("bebd87f6863d4d7a", "1e4ed39eb4b6c675"),
    "switches": ("f3beba0ca15bf386", "b04db1978f11d3af"),
}
"""Of the landscapes for development, and of those held out. They are never changed."""


def known_lands(family: str, held_out: bool) -> list[KnownLand]:
    return [landscape(family, number, held_out=held_out) for number in range(LANDSCAPES)]


def digest(lands: list[KnownLand]) -> str:
    """The space, the default, 50 quantiles of the times and three runs of each landscape."""
    state = hashlib.sha256()
    for known in lands:
        rng = np.random.default_rng(0)
        parts = np.quantile(known.times, np.linspace(0, 1, 50)).tolist()
        parts += [known.land.draw(DEFAULT, rng)[0] for _ in range(3)]
        defaults = [p.default for p in known.land.space]
        state.update(f"{known.land.space.hash} {defaults} {[f'{v:.6g}' for v in parts]}".encode())
    return state.hexdigest()[:16]


@case_table("family", FAMILIES)
def test_the_landscapes_are_the_same_for_ever(family: str) -> None:
    assert tuple(digest(known_lands(family, held)) for held in (False, True)) == DIGESTS[family]


@case_table("family", FAMILIES)
def test_the_space_has_the_settings_of_the_landscape(family: str) -> None:
    known = landscape(family, 0)
    space = known.land.space
    rng = np.random.default_rng(1)
    drawn = [{p.name: p.levels[rng.integers(len(p.levels))] for p in space} for _ in range(400)]
    valid = [space.is_valid(Setting(values)) for values in drawn]
    assert {True, False} == set(valid)
    for values, is_valid in zip(drawn, valid, strict=True):
        if is_valid:
            known.land.truth(Setting(values))
        else:
            with pytest.raises(KeyError):
                known.land.truth(Setting(values))
    assert known.land.truth(DEFAULT) == 1
    assert 5 <= len(space.names) <= 12
    assert all(2 <= len(p.levels) <= 30 for p in space)


def test_the_number_of_settings_is_that_of_the_space() -> None:
    known = min(
        (landscape(f, n) for f in FAMILIES for n in range(LANDSCAPES)), key=lambda k: len(k.times)
    )
    settings = known.land.space.all_settings(len(known.times) + 1)
    assert settings is not None
    assert len(settings) == len(known.times)
    finite = [known.land.truth(s) for s in settings if math.isfinite(known.land.truth(s))]
    assert min(finite) == pytest.approx(known.best)


def test_random_search_has_an_exact_expectation() -> None:
    known = landscape("tangled", 1)
    small = KnownLand(known.land, np.array([0.2, 0.5, 0.9, 1.3, 1.3]))
    for draws in (1, 2, 3, 5):
        smallest = [min(drawn) for drawn in itertools.combinations(small.times, draws)]
        assert small.expected_best(draws) == pytest.approx(np.mean(smallest))


def test_the_score_is_0_for_random_and_1_for_the_best() -> None:
    known = landscape("switches", 1)
    best = next(
        s for s in known.land.space.enumerate() if known.land.truth(s) == pytest.approx(known.best)
    )
    assert known.score(best, 50) == pytest.approx(1)
    expected = known.expected_best(50)
    worse = (expected - 1) / (expected - known.best)
    assert known.score(DEFAULT, 50) == pytest.approx(worse)


def recorded_space(folder: Path, kernel: str = "convolution_kernel") -> None:
    """A small recording in the hub's form, in which one setting failed."""
    levels = {"block_size_x": [16, 32], "block_size_y": [1, 2], "tile_size_x": [1, 2]}
    levels |= {"tile_size_y": [1, 2], "use_padding": [0, 1], "use_shmem": [0, 1], "one": [7]}
    cache = {}
    for number, values in enumerate(itertools.product(*levels.values())):
        entry = dict(zip(levels, values, strict=True))
        if entry["use_padding"] and (entry["block_size_x"] % 32 == 0 or not entry["use_shmem"]):
            continue
        cache[str(number)] = entry | {"time": "Failed" if number == 0 else 1.0 + number}
    document = {"kernel_name": kernel, "tune_params_keys": list(levels), "tune_params": levels}
    file = folder / "GPU.json.gz"
    file.write_bytes(gzip.compress(json.dumps(document | {"cache": cache}).encode()))


def test_a_recorded_space_has_its_settings_and_a_default_of_middle_rank(tmp_path: Path) -> None:
    recorded_space(tmp_path)
    assert recorded_names(tmp_path) == ["GPU"]
    known = recorded(tmp_path, "GPU", 3)
    space = known.land.space
    settings = space.all_settings(1000)
    assert settings is not None
    assert len(settings) == len(known.times)
    states = [known.land.draw(s, np.random.default_rng(0))[1] for s in settings]
    assert states.count("failed") == 1
    rank = np.searchsorted(known.times, 1.0) / len(known.times)
    assert 0.35 <= rank <= 0.65
    recorded_space(tmp_path, "other")
    with refused(UsageError, "benchmark.fails"):
        recorded(tmp_path, "GPU", 4)
    with refused(UsageError, "benchmark.fails"):
        recorded_names(tmp_path / "none")


def test_the_table_has_every_group_and_stores_its_searches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(interaction_table, "LANDSCAPES", 2)
    monkeypatch.setattr(interaction_table, "MARKS", (5, 10, 15, 20))
    recorded_space(tmp_path)
    out = tmp_path / "scores.json"
    words = ["--family", "switches", "--spaces", str(tmp_path), "--seeds", "2", "--json", str(out)]
    words += ["--against", "random", "--strategy", "ga:thesis"]
    assert interaction_table.main(words) == 0
    printed = capsys.readouterr()
    assert printed.err.count("searches") == 4
    assert max(map(len, printed.out.splitlines())) <= 80
    document = json.loads(out.read_text())["scores"]
    assert {group: len(rows["random"]) for group, rows in document.items()} == {
        "switches": 2,
        "recorded": 1,
    }
    assert all(-1 <= s <= 1 for land in document["switches"]["random"] for m in land for s in m)
    assert interaction_table.main(words) == 0
    assert capsys.readouterr() == (printed.out, "")
