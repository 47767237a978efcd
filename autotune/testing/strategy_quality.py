"""The quality of search strategies: they cover a space, find a plain optimum, and use the seed."""

from __future__ import annotations

import math

import pytest

from autotune.space import DEFAULT, Setting, Space
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
    drive_to_the_end,
    fine,
    inactive_size,
    inactive_size_by_node,
    keys,
    observe,
    rough,
)
from autotune.testing.strategy import StrategySuite

GO_ON = "where propose() has nothing better, end it with: return self.anything_new()"


def check_covered(proposed: set[str], expected: set[str]) -> None:
    """Raise AssertionError if settings (by their keys) were not proposed, or others were."""
    missing, extra = sorted(expected - proposed), sorted(proposed - expected)
    assert not missing, (
        f"{len(missing)} of {len(expected)} settings are never proposed, such as {missing[0]}; "
        f"{GO_ON}"
    )
    assert not extra, f"{', '.join(extra)} are not settings of the space"


class StrategyQuality(StrategySuite):
    """What a good strategy does.  Subclass it with a fixture ``kind``: the class of the strategy.

    A strategy may break these demands by design; a study works all the same.
    """

    @pytest.mark.parametrize(
        "space", [SMALL, RULES, INVALID_DEFAULT, SINGLE, CHOICE], ids=lambda s: s.name
    )
    @pytest.mark.parametrize("measure", [fine, rough])
    def test_covers_a_small_space(
        self, kind: type[Strategy], space: Space, measure: Measure
    ) -> None:
        everything = {s.key for s in space.enumerate()} - {DEFAULT.key}
        strategy = self.make(kind, space)
        observations = drive(strategy, len(everything) + 5, measure)
        check_covered(set(keys(observations)), everything)
        assert strategy.ask() is None

    def test_goes_on_in_a_large_space(self, kind: type[Strategy]) -> None:
        """With everything known that others tried, are trying, and that failed."""
        strategy = self.make(kind, MANY)
        foreign = [s for s, _ in zip(MANY.enumerate(), range(30), strict=False)]
        strategy.restore([observe(i, s, fine) for i, s in enumerate(foreign)])
        for number in range(30, 38):
            proposal = strategy.ask()
            assert proposal is not None, f"it ended after {number - 30} proposals; {GO_ON}"
            strategy.add_running(Observation(number, proposal.setting, None, "running"))
        more = drive(strategy, 40, rough, first=38)
        assert len(more) == 40, f"it ended after {len(more)} of 40 trials; {GO_ON}"

    def test_covers_what_is_left_without_an_inactive_parameter(self, kind: type[Strategy]) -> None:
        tried = drive_to_the_end(self.make(kind, SMALL), fine, inactive_size)
        check_covered(
            {SMALL.canonical(s.without("size")).key for s in tried} - {DEFAULT.key},
            {s.key for s in SMALL.enumerate() if "size" not in s} - {DEFAULT.key},
        )

    def test_what_is_inactive_under_one_mapping_is_tried_under_others(
        self, kind: type[Strategy]
    ) -> None:
        tried = drive_to_the_end(self.make(kind, MAPPINGS), fine, inactive_size_by_node)
        check_covered(
            {s.key for s in tried if s.get("map_by") != "node"},
            {s.key for s in MAPPINGS.enumerate() if s and s.get("map_by") != "node"},
        )

    def test_covers_the_parameters_that_the_program_uses(self, kind: type[Strategy]) -> None:
        acting = WIDE.names[:2]
        idle = [name for name in WIDE.names if name not in acting]
        tried = drive_to_the_end(self.make(kind, WIDE), fine, lambda _: {"unused": idle})
        every = math.prod(len(WIDE[name].choices) for name in acting) - 1
        assert every <= len(tried) <= every + 1, (
            f"{len(tried)} of {every} settings of the two parameters that act; {GO_ON}"
        )

    def test_another_seed_gives_another_order(self, kind: type[Strategy]) -> None:
        first, *others = (keys(drive(self.make(kind, MANY, s), 15, rough)) for s in (1, 2, -1))
        assert first not in others, (
            "another seed gives the same proposals: draw from self.rng(self.ordinal), or begin "
            "with self.anything_new()"
        )

    def test_finds_the_best_of_a_plain_landscape(self, kind: type[Strategy]) -> None:
        observations = drive(self.make(kind, SMALL), 60, fine)
        best = min(observations, key=lambda o: o.fitness)
        assert best.setting == Setting({"flag": 1, "size": 256, "word": "ring"}), (
            f"the best of {len(observations)} trials is {best.setting.key}; begin with the setting "
            "of the smallest observation.fitness, change its parameters one by one "
            f"(parameter.choices), and {GO_ON}"
        )
