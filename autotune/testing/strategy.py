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
    FORCED,
    MANY,
    MAPPED,
    RULED,
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
"""Pulses of one proposal after which it counts as endless; each stands for many settings."""


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
    @pytest.mark.parametrize("space", [SMALL, RULED, MANY, FORCED, CHOICE], ids=lambda s: s.name)
    def test_proposes_valid_canonical_settings_each_once(
        self, kind: type[Strategy], space: Space, measure: Measure
    ) -> None:
        told = drive(self.make(kind, space), 40, measure)
        assert len(told) >= 15
        for observation in told:
            assert space.violations(observation.setting) == []
            assert space.canonical(observation.setting) == observation.setting
        assert len(set(keys(told))) == len(told)
        assert DEFAULT.key not in keys(told)

    @pytest.mark.parametrize("space", [SMALL, RULED, FORCED, SINGLE, CHOICE], ids=lambda s: s.name)
    @pytest.mark.parametrize("measure", [fine, rough])
    def test_ends_when_a_small_space_is_covered(
        self, kind: type[Strategy], space: Space, measure: Measure
    ) -> None:
        everything = {s.key for s in space.enumerate()} - {DEFAULT.key}
        strategy = self.make(kind, space)
        told = drive(strategy, len(everything) + 5, measure)
        assert set(keys(told)) == everything
        assert strategy.ask() is None

    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        killed=st.integers(0, 45),
        space=st.sampled_from([RULED, MANY, CHOICE]),
        measure=st.sampled_from([fine, rough, hopeless]),
        seed=st.integers(0, 3),
        idle=st.sampled_from([None, "flag"]),
        shuffle=st.randoms(use_true_random=False),
    )
    def test_a_rebuilt_strategy_goes_on_the_same_way(
        self,
        kind: type[Strategy],
        killed: int,
        space: Space,
        measure: Measure,
        seed: int,
        idle: str | None,
        shuffle: random.Random,
    ) -> None:
        prior = next(s for s in space.enumerate() if len(s) == 2)
        whole = drive(self.make(kind, space, seed, priors=[prior]), killed + 6, measure, idle=idle)
        stored = whole[:killed]
        shuffle.shuffle(stored)
        again = self.make(kind, space, seed, priors=[prior])
        again.restore(stored)
        rest = drive(again, 6, measure, first=killed, idle=idle)
        assert keys(rest) == keys(whole[killed:])

    def test_a_trial_open_at_the_kill_is_finished_first(self, kind: type[Strategy]) -> None:
        whole = drive(self.make(kind, MANY), 20, rough)
        again = self.make(kind, MANY)
        again.restore(whole[:12])
        again.tell(whole[12])
        assert keys(drive(again, 7, rough, first=13)) == keys(whole[13:])

    @pytest.mark.parametrize("done", [0, 3, 25])
    def test_running_trials_are_not_proposed_again(self, kind: type[Strategy], done: int) -> None:
        mine, other = self.make(kind, MANY), self.make(kind, MANY)
        told = drive(mine, done, fine)
        other.restore(told)
        running = []
        for number in range(done, done + 8):
            proposal = mine.ask()
            assert proposal is not None
            running.append(proposal.setting)
            other.add_running(Observation(number, proposal.setting, None, "running"))
        proposed = drive(other, 20, fine, first=done + 8)
        assert not {s.key for s in running} & set(keys(proposed))
        assert len({s.key for s in running}) == 8
        for number, setting in enumerate(running, done):
            other.tell(observe(number, setting, fine))
        more = drive(other, 5, fine, first=done + 28)
        assert len(more) == 5
        assert not {s.key for s in running} & set(keys(more))

    def test_priors_come_first_and_once(self, kind: type[Strategy]) -> None:
        priors = [
            Setting({"size": 1024, "flag": 1}),
            Setting({"word": "ring"}),
            Setting({"word": "ring"}),
            DEFAULT,
        ]
        told = drive(self.make(kind, MANY, priors=priors), 10, fine)
        assert keys(told)[:2] == ["flag=1,size=1024", "word=ring"]
        assert len(set(keys(told))) == 10

    def test_priors_that_are_not_valid_are_named_and_not_tried(self, kind: type[Strategy]) -> None:
        priors = [Setting({"nonsense": 1}), Setting({"size": 5}), Setting({"word": "ring"})]
        strategy = self.make(kind, MANY, priors=priors)
        assert [s.key for s, _ in strategy.rejected] == ["nonsense=1", "size=5"]
        assert "nonsense" in strategy.rejected[0][1]
        assert keys(drive(strategy, 1, fine)) == ["word=ring"]

    def test_an_inactive_parameter_is_not_tried_again(self, kind: type[Strategy]) -> None:
        strategy = self.make(kind, SMALL)
        told: list[Setting] = []
        while (proposal := strategy.ask()) is not None:
            told.append(proposal.setting)
            estimate, state = fine(proposal.setting)
            seen: dict[str, object] = {"inactive": ["size"]}
            strategy.tell(Observation(len(told), proposal.setting, estimate, state, seen))
        assert not any("size" in setting for setting in told[1:])
        effective = [SMALL.canonical(s.without("size")).key for s in told]
        assert len(set(effective)) == len(effective)
        assert set(effective) | {"default"} == {
            s.key for s in SMALL.enumerate() if "size" not in s
        } | {"default"}

    def test_what_is_inactive_under_one_mapping_is_tried_under_others(
        self, kind: type[Strategy]
    ) -> None:
        strategy = self.make(kind, MAPPED)
        told: list[Setting] = []
        while (proposal := strategy.ask()) is not None:
            told.append(proposal.setting)
            estimate, state = fine(proposal.setting)
            idle = proposal.setting.get("map_by") == "node" and "size" in proposal.setting
            seen: dict[str, object] = {"inactive": ["size"]} if idle else {}
            strategy.tell(Observation(len(told), proposal.setting, estimate, state, seen))
        alone = [s for s in told if s.get("map_by") == "node"]
        assert sum("size" in s for s in alone) <= 1
        others = {s.key for s in MAPPED.enumerate() if s and s.get("map_by") != "node"}
        assert {s.key for s in told if s not in alone} == others

    def test_what_is_unused_is_tried_under_no_mapping(self, kind: type[Strategy]) -> None:
        strategy = self.make(kind, MAPPED)
        told: list[Setting] = []
        while (proposal := strategy.ask()) is not None:
            told.append(proposal.setting)
            estimate, state = fine(proposal.setting)
            seen: dict[str, object] = {"unused": ["size"]}
            strategy.tell(Observation(len(told), proposal.setting, estimate, state, seen))
        assert not any("size" in setting for setting in told[1:])

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
        told: list[Setting] = []
        while (proposal := strategy.ask()) is not None:
            told.append(proposal.setting)
            estimate, state = fine(proposal.setting)
            idle = [name for name in WIDE.names if name not in acting]
            strategy.tell(
                Observation(len(told), proposal.setting, estimate, state, {attribute: idle})
            )
            pulses = 0
        assert all(set(setting) <= set(acting) for setting in told[1:])
        if attribute == "unused":
            every = math.prod(len(WIDE[name].choices) for name in acting) - 1
            assert every <= len(told) <= every + 1

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
        told = drive(strategy, 10, fine, first=31)
        assert len(told) == 10
        assert not {s.key for s in foreign} & set(keys(told))

    def test_finds_the_best_of_a_plain_landscape(self, kind: type[Strategy]) -> None:
        told = drive(self.make(kind, SMALL), 60, fine)
        best = min(told, key=lambda o: o.fitness)
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

    def test_a_space_with_nothing_but_the_default_ends_at_once(self, kind: type[Strategy]) -> None:
        rule = Constraint(parse_expression("lone == 0"))
        space = Space("nothing", (Parameter("lone", (7,)),), (rule,))
        assert self.make(kind, space).ask() is None
