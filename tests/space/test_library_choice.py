"""The MPI library as a parameter: the spaces of several libraries as one."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from autotune.errors import UsageError
from autotune.space import (
    DEFAULT,
    InactiveParameters,
    LibraryChoice,
    Parameter,
    Setting,
    Space,
    load_space,
    parse_expression,
)
from autotune.space.space import Constraint
from autotune.testing.landscapes import CHOICE
from tests.refusals import refused
from tests.space.libraries import NEW, OLD, ONE_NODE

MPICH = Space(
    "mpich",
    (Parameter("MPIR_CVAR_BCAST_INTRA_ALGORITHM", ("auto", "binomial"), default="auto"),),
)
OTHER = {"mpi": "other-1.0"}


@pytest.fixture(scope="module")
def three() -> LibraryChoice:
    first, old = (load_space("openmpi", library, ONE_NODE) for library in (NEW, OLD))
    return LibraryChoice.of(first, {"openmpi-4.1.8": old, "mpich-4.0.2": MPICH})


def of(first: tuple[Parameter, ...], other: tuple[Parameter, ...]) -> LibraryChoice:
    return LibraryChoice.of(Space("one", first), {"other-1.0": Space("two", other)})


class TestUnion:
    def test_the_choice_names_the_other_libraries(self, three: LibraryChoice) -> None:
        assert three.names[0] == "mpi"
        assert three["mpi"].levels == ("openmpi-4.1.8", "mpich-4.0.2")
        assert three["mpi"].unset
        assert three.name.split(", ") == ["openmpi", "mpich"]

    def test_a_parameter_of_several_libraries_is_there_once(self, three: LibraryChoice) -> None:
        names = [name for space in three.members.values() for name in space.names]
        assert len(names) > len(set(names)), "the libraries share parameters"
        assert sorted(three.names) == sorted({"mpi", *names})
        assert set(three["map_by"].levels) == {"slot", "numa", "package", "socket", "node"}

    def test_a_parameter_acts_under_the_libraries_that_have_it(self, three: LibraryChoice) -> None:
        name = "MPIR_CVAR_BCAST_INTRA_ALGORITHM"
        assert str(three[name].when) == str(parse_expression("set(mpi) and mpi == 'mpich-4.0.2'"))
        assert not three.active(name, {})
        assert three.active(name, {"mpi": "mpich-4.0.2"})
        assert three.active("btl_sm_eager_limit", {})
        assert not three.active("btl_sm_eager_limit", {"mpi": "openmpi-4.1.8"})
        assert not three.active("map_by", {"mpi": "mpich-4.0.2"})
        assert three.active("mpi", {})

    def test_conditions_hold_in_the_plain_reading_too(self, three: LibraryChoice) -> None:
        plain = Space("plain", three.parameters, three.constraints, facts=three.facts)
        drawn = np.random.default_rng(1)
        for _ in range(50):
            setting = three.sample(drawn)
            assert not list(plain.idle(setting))
            assert plain.violations(setting) == []

    def test_levels_are_those_of_the_library(self, three: LibraryChoice) -> None:
        (words,) = three.violations({"map_by": "socket"})
        [rule] = three.broken_rules({"map_by": "socket"})
        assert str(rule) in words
        assert rule.expr.names == {"map_by", "mpi"}
        assert three.is_valid({"map_by": "socket", "mpi": "openmpi-4.1.8"})
        assert not three.is_valid({"map_by": "package", "mpi": "openmpi-4.1.8"})

    def test_a_value_counts_as_default_under_its_library_only(self) -> None:
        assert CHOICE["flag"].default is None
        assert CHOICE.canonical({"flag": 0}) == DEFAULT
        assert CHOICE.canonical({"flag": 1}) == Setting({"flag": 1})
        assert CHOICE.canonical({"flag": 1, **OTHER}) == Setting(OTHER)
        assert CHOICE.canonical({"flag": 0, **OTHER}) == Setting({"flag": 0, **OTHER})

    def test_conditions_use_the_defaults_of_the_library(self) -> None:
        assert CHOICE.active("depth", OTHER)
        assert not CHOICE.active("depth", {"flag": 0, **OTHER})
        assert not CHOICE.active("depth", {"flag": 1})
        assert CHOICE.value("flag", OTHER) == 1
        assert CHOICE.value("flag", {}) == 0
        assert CHOICE.value("mpi", {}) is None

    def test_values_of_another_library_are_left_out(self) -> None:
        given = {"size": 256, "word": "tree", "depth": 2}
        assert CHOICE.canonical({**given, **OTHER}).key == "depth=2,mpi=other-1.0,word=tree"
        assert CHOICE.canonical(given).key == "size=256,word=tree"
        assert CHOICE.canonical({"unknown": 1, **OTHER}).key == "mpi=other-1.0,unknown=1"

    def test_rules_apply_under_their_library(self) -> None:
        rule = Constraint(parse_expression("a < b"), "small first")
        numbers = (Parameter("a", (1, 2)), Parameter("b", (1, 2)))
        space = LibraryChoice.of(
            Space("one", numbers), {"other-1.0": Space("two", numbers, (rule,))}
        )
        wrong = {"a": 2, "b": 1}
        assert space.is_valid(wrong)
        assert [str(broken.expr) for broken in space.broken_rules({**wrong, **OTHER})] == [
            str(rule.expr)
        ]
        [words] = space.violations({**wrong, **OTHER})
        assert str(rule) in words

    def test_parameters_of_one_form_are_shared_without_a_condition(self) -> None:
        same = (Parameter("bind_to", ("none", "core"), target="placement"),)
        space = of(same, same)
        assert space["bind_to"] == same[0]
        assert space.canonical({"bind_to": "core", **OTHER}) == Setting(
            {"bind_to": "core", **OTHER}
        )


class TestSettings:
    def test_every_setting_comes_once_and_the_default_first(self) -> None:
        found = list(CHOICE.enumerate())
        assert found[0] == DEFAULT
        assert len(found) == len(set(found)) == 36
        assert CHOICE.all_settings(36) == found
        assert CHOICE.all_settings(35) is None
        for setting in found:
            assert CHOICE.is_valid(setting)
            assert CHOICE.canonical(setting) == setting
            assert not list(CHOICE.idle(setting))

    def test_samples_are_canonical(self, three: LibraryChoice) -> None:
        drawn = np.random.default_rng(0)
        libraries = set()
        for _ in range(100):
            setting = three.sample(drawn)
            libraries.add(setting.get("mpi"))
            assert three.is_valid(setting)
            assert three.canonical(setting) == setting
        assert libraries == {None, "openmpi-4.1.8", "mpich-4.0.2"}

    def test_each_library_as_it_is_is_tried_first(self, three: LibraryChoice) -> None:
        keys = [start.key for start in islice(three.starts, 2)]
        assert keys == ["mpi=openmpi-4.1.8", "mpi=mpich-4.0.2"]
        assert all(three.is_valid(start) for start in three.starts)

    def test_the_launch_names_the_library(self, three: LibraryChoice) -> None:
        chosen = {"MPIR_CVAR_BCAST_INTRA_ALGORITHM": "binomial", "mpi": "mpich-4.0.2"}
        assert three.launched(chosen) == {
            "mca": {"MPIR_CVAR_BCAST_INTRA_ALGORITHM": "binomial"},
            "library": {"mpi": "mpich-4.0.2"},
        }
        assert "library" not in three.launched({"map_by": "numa"})
        with pytest.raises(UsageError, match="not a parameter"):
            three.launched({"nonsense": 1})


class TestChange:
    def test_the_hash_covers_names_and_members(self) -> None:
        first, other = CHOICE.members.values()
        again = LibraryChoice.of(first, {"other-1.0": other})
        assert again.hash == CHOICE.hash
        assert LibraryChoice.of(first, {"other-2.0": other}).hash != CHOICE.hash
        assert LibraryChoice.of(other, {"other-1.0": first}).hash != CHOICE.hash

    def test_a_default_that_a_run_showed_is_that_of_the_first_library(self) -> None:
        idle = InactiveParameters(CHOICE)
        assert idle.learn_default("word", "ring")
        assert not idle.learn_default("word", "ring"), "it is known by now"
        assert idle.strip(Setting({"word": "ring"})) == DEFAULT
        assert idle.strip(Setting({"word": "tree", **OTHER})).get("word") == "tree"
        assert not idle.learn_default("depth", 1), "the first library does not have it"

    def test_what_was_inactive_is_known_for_its_library(self) -> None:
        idle = InactiveParameters(CHOICE)
        idle.learn(["flag"], Setting({"flag": 1}))
        assert idle.strip(Setting({"flag": 1})) == DEFAULT
        assert idle.strip(Setting({"flag": 0, **OTHER})) == Setting({"flag": 0, **OTHER})

    def test_the_default_tells_of_the_parameters_of_its_library_only(self) -> None:
        assert CHOICE.of_default == ("size",)
        assert CHOICE.foreign({}) == {"depth"}
        assert CHOICE.foreign(OTHER) == {"size"}

    def test_a_parameter_is_taken_out_under_all_libraries(self) -> None:
        left = CHOICE.without({"flag": "fixed"})
        assert left.names == ("mpi", "size", "word", "depth")
        assert left.absent == {"flag": "fixed"}


class TestRefusals:
    def test_a_space_with_a_parameter_of_that_name(self) -> None:
        with refused(UsageError, "space.libraries_differ"):
            of((Parameter("mpi", (1, 2)),), ())

    def test_one_name_for_two_things(self) -> None:
        with refused(UsageError, "space.libraries_differ"):
            of((Parameter("chunk", (1, 2)),), (Parameter("chunk", (1, 2), target="env"),))
        with refused(UsageError, "space.libraries_differ"):
            of((Parameter("chunk", (1, 2)),), (Parameter("chunk", ("a", "b")),))

    def test_a_parameter_that_only_one_library_must_be_given(self) -> None:
        forced = Parameter("ranks", (1, 2), target="resource", unset=False)
        with refused(UsageError, "space.libraries_differ"):
            of((forced,), ())
        assert of((forced,), (forced,))["ranks"] == forced
