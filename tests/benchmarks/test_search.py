"""The benchmark of searches: what it scores is right, and what it prints fits."""

from __future__ import annotations

import sys

import pytest

from autotune.space import DEFAULT
from autotune.strategies import create
from benchmarks.search.__main__ import main
from benchmarks.search.course import follow
from benchmarks.search.landscapes import grid
from benchmarks.search.peers import find_peer


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
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--landscapes", "2", "--seeds", "2", "--runs", "15", "--proofs", "1"]
    monkeypatch.setattr(sys, "argv", ["search", *words, "--strategies", "ga:thesis", "random"])
    assert main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("random") for line in lines)


def test_a_wrong_strategy_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["search", "--strategies", "gaa", "--landscapes", "1"])
    assert main() == 2
    assert "did you mean ga" in capsys.readouterr().err
