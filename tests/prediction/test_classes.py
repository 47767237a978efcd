"""Classes of programs by their features."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autotune.errors import UsageError
from autotune.prediction.classes import find_classes, words_of
from tests.cli.conftest import Cli
from tests.prediction.conftest import Recorded
from tests.prediction.family import example
from tests.refusals import refused


def test_three_groups_are_found_as_three_classes() -> None:
    sizes = {"a": (100, 110, 120, 130), "b": (5000, 5100, 5200), "c": (300000, 310000)}
    examples = [example(f"{g}{i}", s) for g, each in sizes.items() for i, s in enumerate(each)]
    found = find_classes(examples)
    assert [c.apps for c in found.classes] == [
        ("a0", "a1", "a2", "a3"), ("b0", "b1", "b2"), ("c0", "c1"),
    ]  # fmt: skip
    assert [c.number for c in found.classes] == [1, 2, 3]
    assert found.silhouette is not None
    assert found.silhouette > 0.8
    assert found.classes[0].marks[0] == ("p2p_bytes", pytest.approx(115), pytest.approx(125060))
    assert words_of(found.classes[0].marks).startswith("p2p_bytes 115 ")


def test_what_does_not_separate_is_one_class() -> None:
    same = find_classes([example(f"p{i}", 1000) for i in range(6)])
    assert len(same.classes) == 1
    assert same.silhouette is None
    assert same.classes[0].marks == ()


def test_a_given_number() -> None:
    examples = [example(f"p{i}", 100 * 4**i) for i in range(5)]
    for count in (1, 2, 5):
        assert len(find_classes(examples, count).classes) == count
    with refused(UsageError, "classwide.classes_range"):
        find_classes(examples, 6)


def test_by_the_command_line(cli: Cli, recorded: Recorded, work: Path) -> None:
    place = str(recorded.dataset)
    said = cli("dataset", "classes", place, "--classes", "2", "--json", "c.json").out
    found = json.loads((work / "c.json").read_text())
    assert all(cell in said for cell in found["classes"][0]["cells"])
    words = ("classwide", place, "--no-measure", "--class", "1", "--classes", "2", "--json", "-")
    assert cli(*words).code == 0
    assert cli(*words, "--apps", "app00").code == 2
    assert cli("classwide", place, "--no-measure", "--class", "9").code == 2
