"""The contestants: variants of strategies, peers as they come and matched, what is stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.errors import UsageError
from autotune.space import DEFAULT, Setting
from autotune.strategies import Observation, Strategy
from autotune.strategies.codec import Codes
from benchmarks.search.checkpoint import Checkpoint
from benchmarks.search.code_digest import contestant_module
from benchmarks.search.contestants import Rules, compete, maker, search
from benchmarks.search.families import landscape
from benchmarks.search.landscapes import fixed, grid
from benchmarks.search.peers import Peer, find_peer, peer_names
from benchmarks.search.replayed_search import at_budgets, follow, proposals_within
from benchmarks.search.tables import figures, pairs


class _Told(Peer):
    """A tool that tries the settings in order and recommends what its number of trials says."""

    name = "told"
    budgeted = True

    def prepare(self) -> None:
        self._place = 0

    def draw(self) -> Codes:
        self._place += 1
        rest, ranks = self._place, []
        for size in self.sizes:
            rest, rank = divmod(rest, size)
            ranks.append(rank)
        return tuple(ranks)

    def report(self, ranks: Codes, loss: float) -> None: ...

    def recommendation(self) -> Setting | None:
        name = self.space.names[0]
        return Setting({name: self.space[name].levels[0]}) if (self.trials or 0) > 9 else None


def test_a_strategy_with_a_colon_in_its_name_is_a_contestant() -> None:
    land = landscape("benign", 1)
    ours = maker("optuna:TPESampler")(land.space, 0, (), 20)
    assert ours.name == "optuna:TPESampler"
    thesis = maker("ga:thesis")(land.space, 0, (), 20)
    assert (thesis.name, thesis.values["population"]) == ("ga", 50)
    assert contestant_module("optuna:TPESampler").endswith("optuna_samplers")


def test_a_matched_peer_knows_the_default_and_the_order_of_sizes() -> None:
    land = landscape("benign", 1)
    as_it_comes = find_peer("optuna-tpe")(land.space, seed=0)
    matched = find_peer("optuna-tpe:matched")(land.space, seed=0, trials=20)
    assert not any(as_it_comes.ordered)
    sizes = [p for p, ordered in zip(land.space, matched.ordered, strict=True) if ordered]
    assert sizes
    assert all(p.default is not None and not p.is_text for p in sizes)
    place = land.space.names.index(sizes[0].name)
    default = matched.default
    assert default is not None
    values = []
    for rank in range(matched.sizes[place]):
        setting = matched.setting((*default[:place], rank, *default[place + 1 :]))
        assert setting is not None
        values.append(setting.get(sizes[0].name, sizes[0].default))
    assert values == sorted(values)
    for number in range(8):
        proposal = matched.ask()
        assert proposal is not None
        assert proposal.setting != DEFAULT
        matched.tell(Observation(number, proposal.setting, 1.5 - number / 10))
    assert matched.recommendation() == proposal.setting


def test_a_peer_recommends_the_default_until_something_is_faster() -> None:
    land = landscape("benign", 1)
    peer = find_peer("optuna-nsga2:matched")(land.space, seed=0, trials=20)
    proposal = peer.ask()
    assert proposal is not None
    peer.tell(Observation(0, proposal.setting, 1.2))
    assert peer.recommendation() is None


def test_only_a_matched_peer_is_told_how_many_trials_it_has() -> None:
    land = landscape("benign", 1)
    for name, trials in (("optuna-tpe", None), ("optuna-tpe:matched", 12)):
        peer = maker(name)(land.space, 0, (), 12)
        assert isinstance(peer, Peer)
        assert peer.trials == trials
    assert "optuna-tpe:unordered" not in peer_names()  # data


def test_a_budgeted_peer_searches_anew_for_each_number_of_runs() -> None:
    land = grid(1)
    told: list[int] = []

    def make(budget: int) -> Strategy:
        told.append(budget)
        return _Told(land.space, seed=0, trials=proposals_within(land, 0, budget))

    course = at_budgets(land, make, 0, 25)
    assert told == [10, 15, 25]
    assert course.at(10) == DEFAULT
    assert len(course.at(25)) == 1
    # Runs of the default and the warm-up are search runs, but no trials.
    like_auto = follow(land, maker("random+no-repeats")(land.space, 5, (), 25), 5, 25)
    assert proposals_within(land, 5, 25) == len(like_auto.own_s) < 25
    repeating = follow(land, maker("random")(land.space, 5, (), 25), 5, 25)
    assert len(repeating.own_s) < len(like_auto.own_s)
    matched = search(
        lambda space, seed, priors, trials: _Told(space, seed=seed, trials=trials), land, 0, 15
    )
    assert [runs for runs, _, _ in matched.named] == [10, 15]


def test_variants_of_a_strategy() -> None:
    land = landscape("benign", 1)
    plain, quiet = (maker(name)(land.space, 0, (), 9) for name in ("auto", "auto+no-favourite"))
    for number in range(9):
        proposal = plain.ask()
        assert proposal is not None
        same = quiet.ask()
        assert same is not None
        assert same.setting == proposal.setting
        for strategy in (plain, quiet):
            strategy.tell(Observation(number, proposal.setting, land.truth(proposal.setting)))
    assert plain.favourite() is not None
    assert quiet.favourite() is None
    assert maker("random")(land.space, 0, (), 9).repeats
    assert not maker("random+no-repeats")(land.space, 0, (), 9).repeats
    with pytest.raises(UsageError, match="no-repeats"):
        maker("random+no-luck")


def test_leads_and_shares_of_the_oracle_at_each_number_of_runs() -> None:
    cases = [fixed(grid(number)) for number in (1, 2)]
    rules = Rules(seeds=2, runs=15, proofs=0)
    standings = [compete(name, cases, rules) for name in ("random", "random+no-repeats")]
    leads = pairs(standings, cases, 15)["random+no-repeats"]
    assert list(leads) == [10, 15]
    mean = {m: figures(s, cases, 15)["share"][m][0] for s in standings[:1] for m in (10, 15)}
    other = figures(standings[1], cases, 15)
    assert leads[15].mean == pytest.approx(mean[15] - other["share"][15][0])
    # The truth of a function is known, so the oracle's share is 1.
    assert other["relative"][10] == pytest.approx(other["share"][10][0])


def test_results_are_stored_by_the_code_of_their_contestant(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept = Checkpoint.of([], {"seeds": 1})
    kept.write("random", [(([], [], None), False)])
    assert kept.read("random", 1) is not None
    assert kept.read("random+no-repeats", 1) is None
    assert Checkpoint.of([], {"seeds": 2}).read("random", 1) is None
    monkeypatch.setattr("benchmarks.search.checkpoint.code_digest", lambda module: "another")
    assert kept.read("random", 1) is None
