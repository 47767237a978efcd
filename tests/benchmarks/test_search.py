"""The benchmark of searches: what it scores is right, and what it prints fits."""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path

import pytest

from autotune.datasets import load
from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting
from autotune.strategies import Strategy, create
from benchmarks.search.__main__ import main
from benchmarks.search.contestants import maker
from benchmarks.search.landscapes import Land, grid, recordings
from benchmarks.search.peers import find_peer
from benchmarks.search.predicted import predicted_settings
from benchmarks.search.replayed_search import ReplayedSearch, follow
from benchmarks.search.tables import Apart
from tests.datasets.conftest import make, nothing, planted
from tests.prediction.recorded import record


def test_shares_are_of_the_best_gain() -> None:
    land = grid(1)
    best = min(land.space.enumerate(), key=land.truth)
    assert land.share(best) == pytest.approx(1)
    assert land.performance(best) == pytest.approx(1)
    assert land.share(DEFAULT) == pytest.approx(0)
    assert grid(1, null=True).null


def test_a_course_counts_search_runs_and_names_before_any_the_default() -> None:
    land = grid(1)
    course = follow(land, create("random", land.space, seed=0), 0, 20)
    spent = [runs for runs, _, _ in course.named]
    assert spent == sorted(spent)
    assert 20 <= spent[-1] <= 24
    assert course.at(1) == DEFAULT
    assert len(course.own_s) < 20  # Runs of the default are search runs, too.


def test_a_peer_is_driven_without_repeats() -> None:
    land = grid(2)
    peer = find_peer("optuna-tpe")(land.space, seed=0)
    course = follow(land, peer, 0, 25)
    assert len(course.own_s) >= 10


def test_the_tables_fit_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    words = ["--landscapes", "1", "--seeds", "2", "--runs", "10", "--proofs", "1"]
    monkeypatch.setattr(sys, "argv", ["search", *words, "--strategies", "ga:thesis", "random"])
    assert main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("random") for line in lines)


def test_who_has_played_does_not_play_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    played: list[str] = []

    def count(land: Land, strategy: Strategy, seed: int, runs: int) -> ReplayedSearch:
        played.append(type(strategy).__name__)
        return follow(land, strategy, seed, runs)

    monkeypatch.setattr("benchmarks.search.contestants.follow", count)

    def run(*strategies: str, seeds: int = 2, more: tuple[str, ...] = ()) -> tuple[str, int]:
        words = ["--landscapes", "2", "--seeds", str(seeds), "--runs", "10", "--proofs", "0", *more]
        monkeypatch.setattr(sys, "argv", ["search", *words, "--strategies", *strategies])
        played.clear()
        assert main() == 0
        return capsys.readouterr().out, len(played)

    alone, turns = run("random")
    assert turns == 3 * 2  # Two landscapes with a gain and a null one.
    assert run("random") == (alone, 0)
    assert run("ga:thesis", "random")[1] == turns
    assert run("random", seeds=3)[1] == 3 * 3
    assert run("random", more=("--anew",))[1] == turns


def test_apart_on_these_landscapes_and_on_others() -> None:
    seen = Apart.of([[0.1, 0.3], [-0.2, 0.0]])
    assert seen.mean == pytest.approx(0.05)
    # Four values, a variance of 0.02 on each of two landscapes; t of 2 degrees of freedom.
    reach = 4.30265 * (0.02 / 2 + 0.02 / 2) ** 0.5 / 2
    assert seen.here == pytest.approx((0.05 - reach, 0.05 + reach), abs=1e-5)
    # Two landscapes, 0.2 and -0.1; t of 1 degree of freedom.
    reach = 12.7062 * 0.15
    assert seen.elsewhere == pytest.approx((0.05 - reach, 0.05 + reach), abs=1e-4)


def test_where_one_landscape_scatters_its_few_searches_count() -> None:
    steady, wild = [0.1] * 50, [0.0, 1.0, 2.0]
    seen = Apart.of([steady, wild])
    # All error is the wild one's, a variance of 1 over 3 searches: t of 2 degrees of freedom.
    reach = 4.30265 * (1 / 3) ** 0.5 / 2
    assert seen.here == pytest.approx((0.55 - reach, 0.55 + reach), abs=1e-4)


def test_one_search_tells_nothing_of_how_far_apart_two_are() -> None:
    seen = Apart.of([[0.1]])
    assert seen.here == seen.elsewhere == (-math.inf, math.inf)


@pytest.mark.parametrize("words", [["--strategies", "gaa"], ["--blurred"]])
def test_wrong_words_are_refused(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """Only recordings are left out for their noise."""
    monkeypatch.setattr(sys, "argv", ["search", "--landscapes", "1", *words])
    with pytest.raises(UsageError):
        main()


def test_of_two_recordings_the_one_with_more_runs_counts(tmp_path: Path) -> None:
    for name, blocks in (("three", 3), ("nine", 9)):
        make(tmp_path / name, {"planted": planted, "null": nothing}, blocks=blocks)
    found = recordings([str(tmp_path / "three"), str(tmp_path / "nine")])
    cases = found.clear
    assert [case.name for case in cases] == ["nine/planted", "nine/null"]
    assert set(found.reasons) == {"three/planted", "three/null"}
    assert [case.null for case in cases] == [False, True]
    assert not any(case.blurred for case in cases)
    land = cases[0].land(0)
    assert (1 / land.seen - 1) / (1 / land.best - 1) == pytest.approx(1, abs=0.15)


def test_a_gain_that_the_noise_hides_is_no_scale_for_shares(tmp_path: Path) -> None:
    def little(setting: Setting) -> float:
        return 0.9 if setting.get("eager") == 65536 else 1.0

    make(tmp_path / "noisy", {"little": little}, noise=0.15, blocks=9)
    make(tmp_path / "quiet", {"little": little}, noise=0.01, blocks=9)
    found = recordings([str(tmp_path / "noisy"), str(tmp_path / "quiet")])
    assert [len(found.clear), len(found.blurred)] == [1, 0]
    noisy = recordings([str(tmp_path / "noisy")])
    assert not noisy.clear
    assert "noise" in noisy.reasons["noisy/little"]


@pytest.mark.parametrize("slow_share", [0.0, 0.3])
def test_slow_launches_of_others_than_the_best_blur_a_small_gain(
    tmp_path: Path, slow_share: float
) -> None:
    launches = random.Random(0)

    def little(setting: Setting) -> float:
        if setting.get("eager") == 65536:
            return 0.9
        slow = setting.get("eager") == 8192 and launches.random() < slow_share
        return 3.8 if slow else 0.95 if setting.get("eager") == 8192 else 1.0

    make(tmp_path / "launches", {"little": little}, noise=0.01, blocks=6)
    (case,) = recordings([str(tmp_path / "launches")]).cases
    assert case.blurred == (slow_share > 0)


def test_a_traced_contestant_begins_with_what_is_predicted() -> None:
    land = grid(3)
    prior = next(s for s in land.space.enumerate() if len(s) == 2)
    for name, first in (("auto+traced", True), ("auto", False)):
        proposal = maker(name)(land.space, 1, (prior,), 10).ask()
        assert proposal is not None
        assert (proposal.setting == prior) == first


def test_foresight_leaves_the_program_out(tmp_path: Path) -> None:
    record(tmp_path / "toy")
    dataset = load(tmp_path / "toy")
    cell = dataset.cells[0]
    settings = predicted_settings([str(tmp_path / "toy")])(dataset, cell, dataset.space(cell))
    assert len(settings) <= 3
    assert all(not dataset.space(cell).violations(setting) for setting in settings)
