"""The benchmark on families: what is named, what is stored, what is printed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting, Space
from autotune.strategies import Observation, Proposal, Strategy
from benchmarks.search import code_digest, family_table
from benchmarks.search.code_digest import contestant_module
from benchmarks.search.direct_search import named_settings
from benchmarks.search.families import landscape
from benchmarks.search.peers import find_peer


class _Stubborn(Strategy):
    """Tries the settings that it is given; has a favourite of its own."""

    name = "stubborn"
    estimates = True

    def __init__(self, space: Space, settings: list[Setting], own: Setting | None) -> None:
        super().__init__(space, seed=0)
        self._settings, self._own = iter(settings), own

    def propose(self) -> Proposal | None:
        setting = next(self._settings, None)
        return None if setting is None else Proposal(setting)

    def learn(self, observation: Observation) -> None: ...

    def favourite(self) -> Setting | None:
        return self._own


class _Quiet(_Stubborn):
    """One without estimates."""

    estimates = False
    favourite = Strategy.favourite


def test_the_favourite_is_named_where_a_strategy_has_one() -> None:
    land = landscape("benign", 0)
    singles = [Setting({p.name: c}) for p in land.space for c in p.choices if c is not None]
    best = min(singles, key=land.truth)
    strategy = _Stubborn(land.space, singles[:4], best)
    assert named_settings(land, strategy, 0, (2, 4, 9)) == [best] * 3
    strategy = _Stubborn(land.space, [best], None)
    assert named_settings(land, strategy, 0, (1,)) == [DEFAULT]


def test_without_a_favourite_the_best_run_is_named() -> None:
    land = replace(landscape("wide", 3), draw=lambda s, rng: (1.01 if len(s) == 1 else 0.9, "ok"))
    one, two, *_ = [Setting({p.name: p.levels[0]}) for p in land.space]
    strategy = _Quiet(land.space, [one, two, two.with_values(one)], None)
    both = two.with_values(one)
    assert named_settings(land, strategy, 0, (1, 2, 3, 5)) == [DEFAULT, DEFAULT, both, both]


def test_a_matched_peer_knows_the_default_and_does_not_try_it() -> None:
    land = landscape("harsh", 2)
    peer = find_peer("optuna-tpe:unordered")(land.space, seed=0)
    for number in range(12):
        proposal = peer.ask()
        assert proposal is not None
        assert proposal.setting != DEFAULT
        peer.tell(Observation(number, proposal.setting, 1.1))


def played(said: str) -> list[tuple[str, ...]]:
    """Strategy, number of searches and family of each line."""
    return re.findall(r"^(\S+): ([0-9]+) .* (\w+)$", said, re.MULTILINE)


def test_what_is_stored_is_not_played_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(family_table, "LANDSCAPES", 2)
    out = tmp_path / "shares.json"
    words = ["--family", "benign", "--against", "random", "--json", str(out), "--strategy"]
    assert family_table.main([*words, "random"]) == 0
    assert played(capsys.readouterr().err) == [("random", "6", "benign")]
    assert family_table.main([*words, "random", "ga:thesis"]) == 0
    shown = capsys.readouterr()
    assert played(shown.err) == [("ga:thesis", "6", "benign")]
    assert max(map(len, shown.out.splitlines())) <= 80
    shares = json.loads(out.read_text())["shares"]["benign"]
    assert len(shares["random"]) == 2
    assert all(-1 <= s <= 1 for seeds in shares["ga:thesis"] for marks in seeds for s in marks)
    assert family_table.main([*words, "random", "--held-out"]) == 0
    assert "random: 6 searches" in capsys.readouterr().err


def test_a_wrong_strategy_is_refused() -> None:
    with pytest.raises(UsageError):
        family_table.main(["--family", "wide", "--strategy", "gaa"])


def test_the_digest_follows_what_is_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, text in {
        "autotune/__init__.py": "",
        "autotune/first.py": "import numpy\nfrom autotune.shared import x\n",
        "autotune/second.py": "from autotune import first, shared\n",
        "autotune/shared.py": "x = 1\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(code_digest, "ROOT", tmp_path)

    def digests() -> list[str]:
        code_digest.code_digest.cache_clear()
        return [code_digest.code_digest(f"autotune.{name}") for name in ("first", "second")]

    before = digests()
    (tmp_path / "autotune/second.py").write_text("from autotune import first\n")
    after = digests()
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False]
    (tmp_path / "autotune/shared.py").write_text("x = 2\n")
    assert not set(digests()) & set(after)
    code_digest.code_digest.cache_clear()


def test_one_strategy_does_not_change_with_another() -> None:
    auto, ga = contestant_module("auto"), contestant_module("ga:thesis")
    assert (auto, ga) == ("autotune.strategies.auto", "autotune.strategies.ga.strategy")
    assert contestant_module("auto+traced") == auto
    assert code_digest.code_digest(auto) != code_digest.code_digest(ga)
