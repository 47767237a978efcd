"""Derived values, words for the program, and levels that follow from facts."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import UsageError
from autotune.space import Setting, Space, join, load_space
from autotune.space.parameter import divisors
from tests.case_table import case_table
from tests.refusals import refused

TILES = """
[derived]
parts = "x * y"
share = "parts / workers"

[parameters.x]
target = "arg"
levels = [1, 2, 3]
default = 1
[parameters.y]
target = "arg"
levels = [1, 2, 3]
default = 1
[parameters.workers]
levels = "divisors: ranks"
[parameters.fast]
target = "arg"
levels = "bool"
default = 0
option = "--fast"
[parameters.block_size]
target = "arg"
levels = [8, 16]
[parameters.word]
target = "arg"
levels = ["one", "two words"]
option = "-w {word} --of {ranks}"

[[arguments]]
words = "--tiles {x}x{y} --parts {parts}"
[[arguments]]
words = "--share {share}"
when = "workers > 1"

[[constraints]]
rule = "parts % workers == 0"
"""


def read(tmp_path: Path, text: str, ranks: int = 4) -> Space:
    path = tmp_path / "own.toml"
    path.write_text(text)
    return load_space(str(path), facts={"ranks": ranks})


def words(space: Space, text: str) -> list[str]:
    return list(space.launched(Setting.parse(text)).get("arg", {}).values())


def test_words_for_the_program(tmp_path: Path) -> None:
    space = read(tmp_path, TILES)
    assert words(space, "default") == []
    assert words(space, "block_size=8") == ["--block-size 8"]
    assert words(space, "fast=1") == ["--fast"]
    assert words(space, "fast=0") == []
    assert words(space, "x=3") == ["--tiles 3x1 --parts 3"]
    assert words(space, "x=2,y=2,workers=2") == ["--tiles 2x2 --parts 4", "--share 2"]
    assert words(space, 'word="two words"') == ["-w 'two words' --of 4"]  # data


def test_arguments_do_not_come_in_place_of_resources(tmp_path: Path) -> None:
    space = read(tmp_path, TILES)
    assert space.resources == ("workers",)
    assert space.launched(Setting.parse("workers=2"))["resource"] == {"workers": "2"}


def test_rules_may_name_derived_values(tmp_path: Path) -> None:
    space = read(tmp_path, TILES)
    assert space.is_valid({"workers": 2, "x": 2})
    assert not space.is_valid({"workers": 2, "x": 3})
    # Nothing that the rule follows from is set: it does not apply.
    assert space.is_valid({"block_size": 8})
    assert str(space.constraints[0]) == "((parts % workers) == 0)"
    assert space.value("share", {"x": 2, "y": 3, "workers": 2}) == 3


def test_a_derived_value_is_set_where_something_behind_it_is(tmp_path: Path) -> None:
    text = TILES + '[[constraints]]\nrule = "not set(parts) or block_size != 8"\n'
    space = read(tmp_path, text)
    assert space.is_valid({"block_size": 8})
    assert space.is_valid({"block_size": 16, "y": 2})
    assert not space.is_valid({"block_size": 8, "y": 2})


def test_a_derived_value_cannot_be_set(tmp_path: Path) -> None:
    [problem] = read(tmp_path, TILES).violations({"parts": 4})
    assert "(x * y)" in problem


def test_levels_that_follow_from_facts(tmp_path: Path) -> None:
    assert read(tmp_path, TILES, 12)["workers"].levels == (1, 2, 3, 4, 6, 12)
    unknown = load_space(str(tmp_path / "own.toml"))
    assert unknown["workers"].levels == (1,)


def test_workers_are_one_where_unset(tmp_path: Path) -> None:
    assert read(tmp_path, TILES)["workers"].default == 1


@given(st.integers(1, 5000))
def test_divisors(number: int) -> None:
    found = divisors(number)
    assert found[0] == 1
    assert found[-1] == number
    assert list(found) == sorted(set(found))
    assert set(found) == {number // n for n in found}
    assert divisors(float(number)) == found


@case_table("number", [None, 0, -4, 2.5, "word"])
def test_of_what_is_no_whole_number_only_one_is_a_divisor(number: object) -> None:
    assert divisors(number) == (1,)


def test_the_hash_tells_words_and_derived_values_apart(tmp_path: Path) -> None:
    first = read(tmp_path, TILES).hash
    assert read(tmp_path, TILES).hash == first
    for old, new in [
        ("--tiles", "--grid"),
        ('parts = "x * y"', 'parts = "x * y * 1"'),
        ('option = "--fast"', 'option = "--quick"'),
        ('when = "workers > 1"', 'when = "workers > 2"'),
    ]:
        assert read(tmp_path, TILES.replace(old, new)).hash != first


@case_table(
    ("change", "code", "where", "named"),
    [
        (("{x}x{y}", "{x}x{q}"), "space.invalid", "arguments.0.words", "{q}"),
        (("{x}x{y}", "{x}x{block_size}"), "space.invalid", "arguments.0.words", "{block_size}"),
        (("{x}x{y}", "{x}x{y"), "config.invalid", "arguments.0.words", "{y --parts"),
        (("--tiles {x}", "'--tiles {x}"), "config.invalid", "arguments.0.words", "'--tiles"),
        (('"x * y"', '"x * share"'), "space.invalid", "derived.parts", "share"),
        (('"x * y"', '"x *"'), "config.invalid", "derived", "column 4"),
        (("parts = ", "y = "), "space.invalid", "derived.y", ""),
        (("divisors: ranks", "divisors: x"), "space.invalid", "parameters.workers.levels", "x"),
        (
            ("divisors: ranks", "divisors: 2 *"),
            "config.invalid",
            "parameters.workers.levels",
            "column 4",
        ),
        (
            ('when = "workers > 1"', 'when = "cells > 1"'),
            "space.invalid",
            "arguments.1.when",
            "cells",
        ),
        (
            ('levels = "divisors: ranks"', "levels = [1, 2]\ndefault = 2"),
            "space.invalid",
            "parameters.workers.default",
            "1",
        ),
    ],
)
def test_mistakes_are_named(
    tmp_path: Path, change: tuple[str, str], code: str, where: str, named: str
) -> None:
    assert change[0] in TILES
    with refused(UsageError, code) as problem:
        read(tmp_path, TILES.replace(change[0], change[1], 1))
    file, _, words = str(problem.value).partition(f": {where}: ")
    assert file.endswith("own.toml")
    assert named in words


def test_facts_of_the_application(tmp_path: Path) -> None:
    rule = '[[constraints]]\nrule = "cells % x == 0"\n'
    path = tmp_path / "own.toml"
    path.write_text('app_facts = ["cells"]\n' + TILES + rule)
    told = load_space(str(path), facts={"ranks": 4}, app_facts={"cells": 10, "other": 1})
    assert told.is_valid({"x": 2})
    assert not told.is_valid({"x": 3})
    assert "other" not in told.facts
    untold = load_space(str(path), facts={"ranks": 4})
    assert untold.is_valid({"x": 3})
    assert told.hash != untold.hash


def test_joined_spaces_keep_what_follows(tmp_path: Path) -> None:
    first = read(tmp_path, 'requires = "tiles"\n' + TILES)
    second = read(tmp_path, '[parameters.z]\ntarget = "arg"\nlevels = [1, 2]\n')
    both = join([second, first])
    assert both.requires == {"tiles"}
    assert both.launched(Setting.parse("x=2,z=2")) == {
        "arg": {"--z {z}": "--z 2", "--tiles {x}x{y} --parts {parts}": "--tiles 2x1 --parts 2"}
    }
    clash = read(tmp_path, '[parameters.parts]\nlevels = [1, 2]\ntarget = "arg"\n')
    with refused(UsageError, "space.parameter_twice"):
        join([first, clash])
