"""The suites of strategies fail where a strategy breaks a demand, and name the helper."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

import pytest

from autotune.space import DEFAULT, Setting
from autotune.strategies import Observation, Option, Proposal, Strategy
from autotune.testing import StrategyContract, StrategyQuality
from autotune.testing.landscapes import MANY, MAPPINGS, RULES, SMALL, fine, inactive_size

SUITE, QUALITY = StrategyContract(), StrategyQuality()


class InOrder(Strategy):
    """Right in everything; the others break one demand each."""

    name = "in-order"
    summary = "whatever is new, in a seeded order"

    def propose(self) -> Proposal | None:
        return self.anything_new()


class Default(InOrder):
    def propose(self) -> Proposal | None:
        return Proposal(DEFAULT)


class Twice(InOrder):
    def propose(self) -> Proposal | None:
        return Proposal(Setting({"word": "ring"})) if self.ordinal < 5 else None


class Unchecked(InOrder):
    def propose(self) -> Proposal | None:
        for low in (4, 2, 1):
            setting = Setting({"low": low, "high": 2})
            if self.is_new(setting):
                return Proposal(setting)
        return None


class NotCanonical(InOrder):
    def propose(self) -> Proposal | None:
        proposal = self.anything_new()
        return proposal and Proposal(proposal.setting.with_values({"flag": 0}))


class Clock(InOrder):
    def propose(self) -> Proposal | None:
        for _ in range(time.monotonic_ns() % 97):
            self.new_proposal(self.space.sample(self.rng(time.monotonic_ns())))
        return self.new_proposal(self.space.sample(self.rng(time.monotonic_ns())))


class Counting(InOrder):
    """Its state is not rebuilt from observations."""

    count = 0

    def propose(self) -> Proposal | None:
        self.count += 1
        for number in range(100):
            if proposal := self.new_proposal(self.space.sample(self.rng(self.count, number))):
                return proposal
        return None


class Forgetful(InOrder):
    """Does not note what runs elsewhere."""

    def add_running(self, observation: Observation) -> None:
        """Forget it."""


class Varying(InOrder):
    """Sets the parameter again that does nothing."""

    def propose(self) -> Proposal | None:
        proposal = self.anything_new()
        return proposal and Proposal(proposal.setting.with_values({"size": 64}))


class Impatient(InOrder):
    """Takes an unusable estimate for a very good one, and then ends."""

    def learn(self, observation: Observation) -> None:
        self.ended = getattr(self, "ended", False) or observation.estimate is None

    def propose(self) -> Proposal | None:
        return None if getattr(self, "ended", False) else self.anything_new()


class Undocumented(InOrder):
    options: ClassVar[dict[str, Option]] = {"depth": Option("depth", "int", 3, "", (1, 5))}


class NoPriors(InOrder):
    def ask(self) -> Proposal | None:
        proposal = self.propose()
        if proposal is not None:
            self._note(proposal.setting)
        return proposal


class OneSeed(InOrder):
    """Always the same order."""

    def propose(self) -> Proposal | None:
        return next((p for s in self.space.enumerate() if (p := self.new_proposal(s))), None)


class Short(InOrder):
    def propose(self) -> Proposal | None:
        return self.anything_new() if self.ordinal < 6 else None


@pytest.mark.parametrize(
    ("kind", "check", "words"),
    [
        pytest.param(kind, check, words, id=kind.__name__)
        for kind, check, words in [
            (
                Default,
                lambda k: SUITE.test_proposes_valid_canonical_settings_without_repetition(
                    k, MANY, fine
                ),
                "default",
            ),
            (
                Twice,
                lambda k: SUITE.test_proposes_valid_canonical_settings_without_repetition(
                    k, SMALL, fine
                ),
                "new_proposal",
            ),
            (
                Unchecked,
                lambda k: SUITE.test_proposes_valid_canonical_settings_without_repetition(
                    k, RULES, fine
                ),
                "valid",
            ),
            (
                NotCanonical,
                lambda k: SUITE.test_proposes_valid_canonical_settings_without_repetition(
                    k, SMALL, fine
                ),
                "canonical",
            ),
            (Clock, SUITE.test_the_seed_alone_decides, "ordinal"),
            (Counting, SUITE.test_a_trial_open_at_the_kill_is_finished_first, "restored"),
            (Counting, lambda k: SUITE.test_a_rebuilt_strategy_goes_on_the_same_way(k), "restore"),
            (
                Forgetful,
                lambda k: SUITE.test_does_not_repeat_running_trials(k, 3),
                "workers",
            ),
            (NoPriors, SUITE.test_priors_come_first_without_repetition, "priors"),
            (
                Varying,
                lambda k: SUITE.test_does_not_vary_a_parameter_that_does_nothing(
                    k, SMALL, inactive_size
                ),
                "nothing",
            ),
            (
                Impatient,
                SUITE.test_observations_without_a_usable_estimate_are_the_worst,
                "fitness",
            ),
            (Undocumented, SUITE.test_documents_and_checks_its_options, "doc"),
            (OneSeed, QUALITY.test_another_seed_gives_another_order, "rng"),
            (Short, QUALITY.test_goes_on_in_a_large_space, "anything_new"),
            (Short, lambda k: QUALITY.test_covers_a_small_space(k, SMALL, fine), "anything_new"),
            (Short, QUALITY.test_finds_the_best_of_a_plain_landscape, "choices"),
            (
                Short,
                QUALITY.test_what_is_inactive_under_one_mapping_is_tried_under_others,
                "anything_new",
            ),
        ]
    ],
)
def test_a_broken_demand_is_named(
    kind: type[Strategy], check: Callable[[type[Strategy]], None], words: str
) -> None:
    with pytest.raises(AssertionError) as failure:
        check(kind)
    assert words in str(failure.value)


def test_a_new_proposal_is_canonical_and_acts() -> None:
    strategy = InOrder(SMALL, seed=0)
    proposal = strategy.new_proposal({"size": 128, "flag": 1})
    assert proposal is not None
    assert proposal.setting.key == "flag=1"
    assert strategy.new_proposal({"flag": 5}) is None
    assert strategy.new_proposal({"nonsense": 5}) is None
    assert InOrder(RULES, seed=0).new_proposal({"low": 4, "high": 1}) is None
    strategy.tell(Observation(0, Setting({"size": 64}), 1.0, "ok", {"unused": ["size"]}))
    assert strategy.new_proposal({"size": 256}) is None
    second = strategy.new_proposal({"size": 256, "word": "ring"})
    assert second is not None
    assert second.setting.key == "word=ring"
    mapped = InOrder(MAPPINGS, seed=0)
    mapped.tell(Observation(0, Setting({"size": 64}), 1.0, "ok", {"inactive": ["size"]}))
    assert mapped.new_proposal({"size": 256}) is None
    assert mapped.new_proposal({"size": 256, "map_by": "node"}) is not None
