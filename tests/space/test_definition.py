"""For which libraries a piece of a definition is, and how a space extends another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autotune.config.find import ConfigFile, read_file
from autotune.errors import UsageError
from autotune.space.definition import matches, read_definition, read_with_mistakes
from runner.mpi.library import Library
from tests.case_table import case_table
from tests.refusals import refused


def _library(version: str, family: str = "openmpi") -> Library:
    return Library(family, version, "", "")


@case_table(
    ("spec", "version", "expected"),
    [
        ("openmpi", "4.1.8", True),
        ("mpich", "4.1.8", False),
        ("openmpi<5", "4.1.8", True),
        ("openmpi<5", "5.0.11", False),
        ("openmpi>=5", "5.0.11", True),
        ("openmpi>=5", "5", True),
        ("openmpi>=5.0.7", "5.0.11", True),
        ("openmpi>=5.0.7", "5.0.6", False),
        ("openmpi==4.1", "4.1.8", True),
        ("openmpi<=4.1", "4.1.8", True),
        ("openmpi!=4.1", "4.1.8", False),
        ("openmpi>4.1", "4.1.8", False),
        ("openmpi>=4.1,<5", "4.1.8", True),
        ("openmpi >= 4.1, < 5", "5.0.0", False),
        ("openmpi>=5", "5.0.0rc1", True),
        ("openmpi>=5.0.1", "5.0.0rc1", False),
    ],
)
def test_matches(spec: str, version: str, expected: bool) -> None:
    assert matches(spec, _library(version)) is expected


@case_table("spec", ["", "5", "openmpi5", "openmpi=5", "openmpi<five", "Open MPI", "<5"])
def test_what_cannot_be_read_is_refused(spec: str) -> None:
    with refused(UsageError, "mpi.series_syntax"):
        matches(spec, _library("5.0.11"))


BASE = """
requires = "base"
[derived]
both = "one * 2"
[parameters.one]
target = "arg"
levels = [1, 2]
default = 1
[parameters.two]
target = "arg"
levels = [1, 2]
[[constraints]]
rule = "one != 2 or two != 2"
"""


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the space "base", of which a test runs in the middle."""
    place = tmp_path / "configs" / "spaces"
    place.mkdir(parents=True)
    (place / "base.toml").write_text(BASE)
    monkeypatch.chdir(tmp_path)
    return place


def own(place: Path, text: str) -> ConfigFile:
    (place / "own.toml").write_text(text)
    return read_file(place / "own.toml")


def test_a_space_that_extends_another_has_its_tables_too(base: Path) -> None:
    text = """
    extends = "base"
    app_facts = ["cells"]
    [derived]
    more = "both + two + three"
    [parameters.one]
    target = "arg"
    levels = [4, 5]
    default = 4
    [parameters.three]
    target = "arg"
    levels = [7]
    [[constraints]]
    rule = "cells > one"
    """
    definition = read_definition(own(base, text))
    assert list(definition.parameters) == ["two", "one", "three"]
    assert definition.parameters["one"].levels == [4, 5]
    assert list(definition.derived) == ["both", "more"]
    assert [c.rule for c in definition.constraints] == ["one != 2 or two != 2", "cells > one"]
    assert (definition.requires, definition.app_facts) == ("base", ["cells"])
    assert read_with_mistakes(own(base, text)) == (definition, [])


def test_a_space_may_extend_one_that_extends_another(base: Path) -> None:
    (base / "middle.toml").write_text(
        'extends = "base"\n[derived]\nmore = "both + 1"\n[parameters.two]\nabsent = "not here"'
    )
    text = 'extends = "middle"\n[parameters.three]\nlevels = [7]'
    definition = read_definition(own(base, text))
    assert list(definition.parameters) == ["one", "two", "three"]
    assert definition.parameters["two"].absent == "not here"
    assert list(definition.derived) == ["both", "more"]
    assert definition.requires == "base"


def test_spaces_that_extend_each_other_are_refused(base: Path) -> None:
    (base / "middle.toml").write_text('extends = "own"\n[parameters.two]\nlevels = [1]')
    file = own(base, 'extends = "middle"\n[parameters.x]\nlevels = [1]')
    with refused(UsageError, "space.extends") as told:
        read_definition(file)
    assert re.findall("own|middle", str(told.value))[-3:] == ["middle", "own", "middle"]


@pytest.mark.parametrize(
    ("extends", "code"),
    [
        ("nothing-like-it", "config.missing"),
        ("./base.toml", "space.extends"),
        ("base.toml", "space.extends"),
        ("own", "space.extends"),
    ],
)
def test_what_cannot_be_extended_is_refused(base: Path, extends: str, code: str) -> None:
    file = own(base, f'extends = "{extends}"\n[parameters.x]\nlevels = [1]')
    with refused(UsageError, code) as told:
        read_definition(file)
    assert extends in str(told.value)
    assert "own.toml" in str(told.value)
    assert read_with_mistakes(file)[1] == [str(told.value)]
