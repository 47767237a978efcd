"""The contract of search strategies."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.errors import UsageError
from autotune.space import DEFAULT, Parameter, Setting, Space, parse_expression
from autotune.space.space import Constraint
from autotune.strategies import Observation, Strategy
from autotune.testing.landscapes import (
    CHOICE,
    INVALID_DEFAULT,
    MANY,
    MAPPINGS,
    RULES,
    SINGLE,
    SMALL,
    WIDE,
    Measure,
    drive,
    fine,
    hopeless,
    keys,
    observe,
    rough,
)

MOST_PULSES = 10_000
"""Pulses after which a proposal counts as endless; each stands for many settings."""


class StrategyContract:
    """The tests of a strategy.  Subclass it with a fixture ``kind``: the class of the strategy."""

    @pytest.fixture
    def kind(self) -> type[Strategy]:
        raise NotImplementedError

    def make(self, kind: type[Strategy], space: Space, seed: int = 0, **more: Any) -> Strategy:
        """The strategy with its default options, but without a limit of patience."""
        options = {"patience": 0} if "patience" in kind.options else {}
        return kind(space, seed=seed, options=options, **more)

    @pytest.mark.parametrize("measure", [fine, rough, hopeless])
    @pytest.mark.parametrize(
        "space", [SMALL, RULES, MANY, INVALID_DEFAULT, CHOICE], ids=lambda s: s.name
    )
    def test_proposes_valid_canonical_settings_without_repetition(
        self, kind: type[Strategy], space: Space, measure: Measure
    ) -> None:
        observations = drive(self.make(kind, space), 40, measure)
        assert len(observations) >= 15
        for observation in observations:
            assert space.violations(observation.setting) == []
            assert space.canonical(observation.setting) == observation.setting
        assert len(set(keys(observations))) == len(observations)
        assert DEFAULT.key not in keys(observations)

    @pytest.mark.parametrize(
        "space", [SMALL, RULES, INVALID_DEFAULT, SINGLE, CHOICE], ids=lambda s: s.name
    )
    @pytest.mark.parametrize("measure", [fine, rough])
    def test_ends_at_the_end_of_a_small_space(
        self, kind: type[Strategy], space: Space, measure: Measure
    ) -> None:
        everything = {s.key for s in space.enumerate()} - {DEFAULT.key}
        strategy = self.make(kind, space)
        observations = drive(strategy, len(everything) + 5, measure)
        assert set(keys(observations)) == everything
        assert strategy.ask() is None

    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        kill_trial=st.integers(0, 45),
        space=st.sampled_from([RULES, MANY, CHOICE]),
        measure=st.sampled_from([fine, rough, hopeless]),
        seed=st.integers(0, 3),
        idle=st.sampled_from([None, "flag"]),
        shuffle=st.randoms(use_true_random=False),
    )
    def test_a_rebuilt_strategy_goes_on_the_same_way(
        self,
        kind: type[Strategy],
        kill_trial: int,
        space: Space,
        measure: Measure,
        seed: int,
        idle: str | None,
        shuffle: random.Random,
    ) -> None:
        prior = next(s for s in space.enumerate() if len(s) == 2)
        whole = drive(
            self.make(kind, space, seed, priors=[prior]), kill_trial + 6, measure, idle=idle
        )
        stored_trials = whole[:kill_trial]
        shuffle.shuffle(stored_trials)
        successor = self.make(kind, space, seed, priors=[prior])
        successor.restore(stored_trials)
        rest = drive(successor, 6, measure, first=kill_trial, idle=idle)
        assert keys(rest) == keys(whole[kill_trial:])

    def test_a_trial_open_at_the_kill_is_finished_first(self, kind: type[Strategy]) -> None:
        whole = drive(self.make(kind, MANY), 20, rough)
        successor = self.make(kind, MANY)
        successor.restore(whole[:12])
        successor.tell(whole[12])
        assert keys(drive(successor, 7, rough, first=13)) == keys(whole[13:])

    @pytest.mark.parametrize("ended_trials", [0, 3, 25])
    def test_does_not_repeat_running_trials(self, kind: type[Strategy], ended_trials: int) -> None:
        mine, other = self.make(kind, MANY), self.make(kind, MANY)
        observations = drive(mine, ended_trials, fine)
        other.restore(observations)
        running = []
        for number in range(ended_trials, ended_trials + 8):
            proposal = mine.ask()
            assert proposal is not None
            running.append(proposal.setting)
            other.add_running(Observation(number, proposal.setting, None, "running"))
        proposals = drive(other, 20, fine, first=ended_trials + 8)
        assert not {s.key for s in running} & set(keys(proposals))
        assert len({s.key for s in running}) == 8
        for number, setting in enumerate(running, ended_trials):
            other.tell(observe(number, setting, fine))
        more = drive(other, 5, fine, first=ended_trials + 28)
        assert len(more) == 5
        assert not {s.key for s in running} & set(keys(more))

    def test_priors_come_first_without_repetition(self, kind: type[Strategy]) -> None:
        priors = [
            Setting({"size": 1024, "flag": 1}),
            Setting({"word": "ring"}),
            Setting({"word": "ring"}),
            DEFAULT,
        ]
        observations = drive(self.make(kind, MANY, priors=priors), 10, fine)
        assert keys(observations)[:2] == ["flag=1,size=1024", "word=ring"]
        assert len(set(keys(observations))) == 10

    def test_names_invalid_priors_and_does_not_try_them(self, kind: type[Strategy]) -> None:
        priors = [Setting({"nonsense": 1}), Setting({"size": 5}), Setting({"word": "ring"})]
        strategy = self.make(kind, MANY, priors=priors)
        assert [s.key for s, _ in strategy.rejected] == ["nonsense=1", "size=5"]
        assert "nonsense" in strategy.rejected[0][1]
        assert keys(drive(strategy, 1, fine)) == ["word=ring"]

    def test_does_not_vary_an_inactive_parameter(self, kind: type[Strategy]) -> None:
        strategy = self.make(kind, SMALL)
        tried_settings: list[Setting] = []
        while (proposal := strategy.ask()) is not None:
            tried_settings.append(proposal.setting)
            estimate, state = fine(proposal.setting)
            attrs: dict[str, object] = {"inactive": ["size"]}
            strategy.tell(
                Observation(len(tried_settings), proposal.setting, estimate, state, attrs)
            )
        assert not any("size" in setting for setting in tried_settings[1:])
        effective = [SMALL.canonical(s.without("size")).key for s in tried_settings]
        assert len(set(effective)) == len(effective)
        assert set(effective) | {"default"} == {
            s.key for s in SMALL.enumerate() if "size" not in s
        } | {"default"}

    def test_what_is_inactive_under_one_mapping_is_tried_under_others(
        self, kind: type[Strategy]
    ) -> None:
        strategy = self.make(kind, MAPPINGS)
        tried_settings: list[Setting] = []
        while (proposal := strategy.ask()) is not None:
            tried_settings.append(proposal.setting)
            estimate, state = fine(proposal.setting)
            idle = proposal.setting.get("map_by") == "node" and "size" in proposal.setting
            attrs: dict[str, object] = {"inactive": ["size"]} if idle else {}
            strategy.tell(
                Observation(len(tried_settings), proposal.setting, estimate, state, attrs)
            )
        by_node = [s for s in tried_settings if s.get("map_by") == "node"]
        assert sum("size" in s for s in by_node) <= 1
        others = {s.key for s in MAPPINGS.enumerate() if s and s.get("map_by") != "node"}
        assert {s.key for s in tried_settings if s not in by_node} == others

    def test_what_is_unused_is_tried_under_no_mapping(self, kind: type[Strategy]) -> None:
        strategy = self.make(kind, MAPPINGS)
        tried_settings: list[Setting] = []
        while (proposal := strategy.ask()) is not None:
            tried_settings.append(proposal.setting)
            estimate, state = fine(proposal.setting)
            attrs: dict[str, object] = {"unused": ["size"]}
            strategy.tell(
                Observation(len(tried_settings), proposal.setting, estimate, state, attrs)
            )
        assert not any("size" in setting for setting in tried_settings[1:])

    @pytest.mark.parametrize("attribute", ["unused", "inactive"])
    def test_ends_where_most_parameters_do_nothing(
        self, kind: type[Strategy], attribute: str
    ) -> None:
        strategy = self.make(kind, WIDE)
        acting = WIDE.names[:2]
        pulses = 0

        def pulse() -> None:
            nonlocal pulses
            pulses += 1
            if pulses > MOST_PULSES:
                raise TimeoutError

        strategy.pulse = pulse
        tried_settings: list[Setting] = []
        while (proposal := strategy.ask()) is not None:
            tried_settings.append(proposal.setting)
            estimate, state = fine(proposal.setting)
            idle = [name for name in WIDE.names if name not in acting]
            strategy.tell(
                Observation(
                    len(tried_settings), proposal.setting, estimate, state, {attribute: idle}
                )
            )
            pulses = 0
        assert all(set(setting) <= set(acting) for setting in tried_settings[1:])
        if attribute == "unused":
            every = math.prod(len(WIDE[name].choices) for name in acting) - 1
            assert every <= len(tried_settings) <= every + 1

    def test_the_seed_alone_decides(self, kind: type[Strategy]) -> None:
        runs = [keys(drive(self.make(kind, MANY, seed), 15, rough)) for seed in (1, 1, 2, -1)]
        assert runs[0] == runs[1]
        assert runs[0] != runs[2]
        assert runs[0] != runs[3]

    def test_settings_of_others_are_learned_without_having_been_asked_for(
        self, kind: type[Strategy]
    ) -> None:
        strategy = self.make(kind, MANY)
        foreign = [s for s, _ in zip(MANY.enumerate(), range(30), strict=False)]
        strategy.restore([observe(i, s, fine) for i, s in enumerate(foreign)])
        strategy.tell(Observation(30, Setting({"size": 333}), 0.5))
        observations = drive(strategy, 10, fine, first=31)
        assert len(observations) == 10
        assert not {s.key for s in foreign} & set(keys(observations))

    def test_finds_the_best_of_a_plain_landscape(self, kind: type[Strategy]) -> None:
        observations = drive(self.make(kind, SMALL), 60, fine)
        best = min(observations, key=lambda o: o.fitness)
        assert best.setting == Setting({"flag": 1, "size": 256, "word": "ring"})

    def test_observations_without_a_usable_estimate_are_the_worst(
        self, kind: type[Strategy]
    ) -> None:
        strategy = self.make(kind, MANY)
        for number, wrong in enumerate([math.nan, math.inf, 0.0, -1.0, None]):
            proposal = strategy.ask()
            assert proposal is not None
            observation = Observation(number, proposal.setting, wrong)
            assert observation.fitness == math.inf
            strategy.tell(observation)
        assert len(drive(strategy, 10, fine, first=5)) == 10

    def test_documents_and_checks_its_options(self, kind: type[Strategy]) -> None:
        assert kind.summary
        for option in kind.options.values():
            assert option.doc
            assert option.read(str(option.default)) == option.default
        with pytest.raises(UsageError, match="has no option 'strangest'"):
            kind(SMALL, seed=0, options={"strangest": 1})

    def test_ends_at_the_default_in_a_space_of_one_setting(self, kind: type[Strategy]) -> None:
        rule = Constraint(parse_expression("lone == 0"))
        space = Space("nothing", (Parameter("lone", (7,)),), (rule,))
        assert self.make(kind, space).ask() is None
