"""The contract of search strategies: what a study relies on, however good the proposals are."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
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
    SMALL,
    WIDE,
    Attributes,
    Measure,
    drive,
    drive_to_the_end,
    fine,
    hopeless,
    inactive_size,
    inactive_size_by_node,
    keys,
    observe,
    rough,
    unused_size,
)

MOST_PULSES = 10_000
"""Pulses after which a proposal counts as endless; each stands for many settings."""
USE_NEW_PROPOSAL = "make every proposal with self.new_proposal(values) or self.anything_new()"
USE_SEED = (
    "draw random numbers from self.rng(self.ordinal), and rebuild all state in learn(): no clock, "
    "no global random numbers, no file"
)


def check_distinct(proposed: Sequence[Setting]) -> None:
    """Raise AssertionError if a setting, or the default, is among the proposals once more."""
    seen = {DEFAULT.key: "the default is known and never proposed"}
    for number, setting in enumerate(proposed):
        assert setting.key not in seen, (
            f"proposal {number}, {setting.key}, is not new: {seen[setting.key]}; {USE_NEW_PROPOSAL}"
        )
        seen[setting.key] = f"it was proposal {number}"


class StrategySuite:
    """The strategy under test.  A subclass has a fixture ``kind``: the class of the strategy."""

    @pytest.fixture
    def kind(self) -> type[Strategy]:
        raise NotImplementedError("define the fixture kind, which returns the strategy's class")

    def make(self, kind: type[Strategy], space: Space, seed: int = 0, **more: Any) -> Strategy:
        """The strategy with its default options, but without a limit of patience."""
        options = {"patience": 0} if "patience" in kind.options else {}
        return kind(space, seed=seed, options=options, **more)


class StrategyContract(StrategySuite):
    """What a study relies on.  Subclass it with a fixture ``kind``: the class of the strategy.

    A strategy that proposes little, or badly, passes as well; :class:`StrategyQuality` has tests of
    the proposals.
    """

    @pytest.mark.parametrize("measure", [fine, rough, hopeless])
    @pytest.mark.parametrize(
        "space", [SMALL, RULES, MANY, INVALID_DEFAULT, CHOICE], ids=lambda s: s.name
    )
    def test_proposes_valid_canonical_settings_without_repetition(
        self, kind: type[Strategy], space: Space, measure: Measure
    ) -> None:
        observations = drive(self.make(kind, space), 40, measure)
        assert observations, "the first ask() returned None, although the space has other settings"
        for observation in observations:
            setting = observation.setting
            problems = space.violations(setting)
            assert not problems, (
                f"{setting.key} is not valid: {'; '.join(problems)}; {USE_NEW_PROPOSAL}"
            )
            canonical = space.canonical(setting)
            assert canonical == setting, (
                f"{setting.key} is not canonical, expected {canonical.key}: values equal to the "
                f"default and conditional parameters that do not apply stay out; {USE_NEW_PROPOSAL}"
            )
        check_distinct([o.setting for o in observations])

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
        assert keys(rest) == keys(whole[kill_trial:]), (
            f"after {len(stored_trials)} trials a new object, which got them by restore(), goes on "
            f"in another way than the old one; {USE_SEED}"
        )

    def test_a_trial_open_at_the_kill_is_finished_first(self, kind: type[Strategy]) -> None:
        whole = drive(self.make(kind, MANY), 20, rough)
        successor = self.make(kind, MANY)
        successor.restore(whole[:12])
        for ended in whole[12:13]:
            successor.tell(ended)
        assert keys(drive(successor, 7, rough, first=13)) == keys(whole[13:]), (
            f"a new object goes on in another way after 12 restored trials and one more; {USE_SEED}"
        )

    @pytest.mark.parametrize("ended_trials", [0, 3, 25])
    def test_does_not_repeat_running_trials(self, kind: type[Strategy], ended_trials: int) -> None:
        mine, other = self.make(kind, MANY), self.make(kind, MANY)
        observations = drive(mine, ended_trials, fine)
        other.restore(observations)
        running: list[Setting] = []
        for number in range(ended_trials, ended_trials + 8):
            proposal = mine.ask()
            if proposal is None:
                break
            running.append(proposal.setting)
            other.add_running(Observation(number, proposal.setting, None, "running"))
        check_distinct(running)
        proposals = drive(other, 20, fine, first=ended_trials + 8)
        for number, setting in enumerate(running, ended_trials):
            other.tell(observe(number, setting, fine))
        proposals += drive(other, 5, fine, first=ended_trials + 28)
        repeated = {s.key for s in running} & set(keys(proposals))
        assert not repeated, (
            f"other workers were running {', '.join(sorted(repeated))}; {USE_NEW_PROPOSAL}"
        )

    def test_priors_come_first_without_repetition(self, kind: type[Strategy]) -> None:
        priors = [
            Setting({"size": 1024, "flag": 1}),
            Setting({"word": "ring"}),
            Setting({"word": "ring"}),
            DEFAULT,
        ]
        observations = drive(self.make(kind, MANY, priors=priors), 10, fine)
        assert keys(observations)[:2] == ["flag=1,size=1024", "word=ring"], (
            "the priors do not come first: override propose(), not ask(), and pass priors to "
            "super().__init__"
        )
        check_distinct([o.setting for o in observations])

    def test_names_invalid_priors_and_does_not_try_them(self, kind: type[Strategy]) -> None:
        priors = [Setting({"nonsense": 1}), Setting({"size": 5}), Setting({"word": "ring"})]
        strategy = self.make(kind, MANY, priors=priors)
        assert [s.key for s, _ in strategy.rejected] == ["nonsense=1", "size=5"], (
            "pass priors to super().__init__, which fills self.rejected"
        )
        assert "nonsense" in strategy.rejected[0][1]
        assert keys(drive(strategy, 1, fine)) == ["word=ring"]

    @pytest.mark.parametrize(
        ("space", "attributes"),
        [
            pytest.param(SMALL, inactive_size, id="inactive"),
            pytest.param(SMALL, unused_size, id="unused"),
            pytest.param(MAPPINGS, unused_size, id="unused-mapped"),
        ],
    )
    def test_does_not_vary_a_parameter_that_does_nothing(
        self, kind: type[Strategy], space: Space, attributes: Attributes
    ) -> None:
        tried = drive_to_the_end(self.make(kind, space), fine, attributes)
        late = [s.key for s in tried[1:] if "size" in s]
        assert not late, (
            f"{', '.join(late)}: the first trial said that size does nothing; {USE_NEW_PROPOSAL}"
        )
        effective = [space.canonical(s.without("size")) for s in tried]
        check_distinct(effective[1:] if effective[:1] == [DEFAULT] else effective)

    def test_an_inactive_parameter_is_left_out_under_its_own_mapping(
        self, kind: type[Strategy]
    ) -> None:
        tried = drive_to_the_end(self.make(kind, MAPPINGS), fine, inactive_size_by_node)
        by_node = [s.key for s in tried if s.get("map_by") == "node" and "size" in s]
        assert len(by_node) <= 1, (
            f"{', '.join(by_node)}: the first of them said that size does nothing under "
            f"map_by=node; {USE_NEW_PROPOSAL}"
        )

    @pytest.mark.parametrize("attribute", ["unused", "inactive"])
    def test_ends_where_most_parameters_do_nothing(
        self, kind: type[Strategy], attribute: str
    ) -> None:
        strategy = self.make(kind, WIDE)
        acting = WIDE.names[:2]
        idle = [name for name in WIDE.names if name not in acting]
        pulses = 0

        def pulse() -> None:
            nonlocal pulses
            pulses += 1
            if pulses > MOST_PULSES:
                raise TimeoutError(
                    "a proposal takes too long: where nearly everything is known, end with None or "
                    "with self.anything_new()"
                )

        def attributes(_: Setting) -> dict[str, object]:
            nonlocal pulses
            pulses = 0
            return {attribute: idle}

        strategy.pulse = pulse
        tried = drive_to_the_end(strategy, fine, attributes)
        late = [s.key for s in tried[1:] if not set(s) <= set(acting)]
        assert not late, (
            f"{', '.join(late)}: only {' and '.join(acting)} do anything; {USE_NEW_PROPOSAL}"
        )

    def test_the_seed_alone_decides(self, kind: type[Strategy]) -> None:
        first, second = (keys(drive(self.make(kind, MANY, 1), 15, rough)) for _ in range(2))
        assert first == second, f"two objects with the same seed go different ways; {USE_SEED}"

    def test_takes_any_seed(self, kind: type[Strategy]) -> None:
        for seed in (-1, 2**70):
            assert drive(self.make(kind, SMALL, seed), 3, fine), f"no proposal with seed {seed}"

    def test_settings_of_others_are_learned_without_having_been_asked_for(
        self, kind: type[Strategy]
    ) -> None:
        strategy = self.make(kind, MANY)
        foreign = [s for s, _ in zip(MANY.enumerate(), range(30), strict=False)]
        strategy.restore([observe(i, s, fine) for i, s in enumerate(foreign)])
        strategy.tell(Observation(30, Setting({"size": 333}), 0.5))
        observations = drive(strategy, 10, fine, first=31)
        repeated = {s.key for s in foreign} & set(keys(observations))
        assert not repeated, (
            f"other workers have tried {', '.join(sorted(repeated))}; {USE_NEW_PROPOSAL}"
        )

    def test_observations_without_a_usable_estimate_are_the_worst(
        self, kind: type[Strategy]
    ) -> None:
        strategy = self.make(kind, MANY)
        for number, wrong in enumerate([math.nan, math.inf, 0.0, -1.0, None]):
            proposal = strategy.ask()
            assert proposal is not None, f"it ended after {number} useless results"
            observation = Observation(number, proposal.setting, wrong)
            assert observation.fitness == math.inf
            strategy.tell(observation)
        assert drive(strategy, 10, fine, first=5), (
            "it ended after five results without a usable estimate: compare observation.fitness, "
            "which is infinite for these, and not observation.estimate"
        )

    def test_documents_and_checks_its_options(self, kind: type[Strategy]) -> None:
        assert kind.name, "give the class a name"
        assert kind.summary, "give the class a summary in one line"
        for option in kind.options.values():
            assert option.doc, f"option {option.name} has no doc"
            assert option.read(str(option.default)) == option.default, (
                f"option {option.name}: its default {option.default} is outside {option.range}"
            )
        with pytest.raises(UsageError, match="has no option 'strangest'"):
            kind(SMALL, seed=0, options={"strangest": 1})

    def test_ends_at_the_default_in_a_space_of_one_setting(self, kind: type[Strategy]) -> None:
        rule = Constraint(parse_expression("lone == 0"))
        space = Space("nothing", (Parameter("lone", (7,)),), (rule,))
        proposal = self.make(kind, space).ask()
        assert proposal is None, f"{proposal} where only the default is valid; {USE_NEW_PROPOSAL}"
