"""Drawings are well-formed, in scale, repeatable, and take the page's colours."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from autotune.report.figures import Mark, bars, boxes, curve, dots, heat_map, steps

SVG = "{http://www.w3.org/2000/svg}"
MARKS = [
    Mark("limit=64k & <b>", 0.2, 0.1, 0.3, "n = 20", highlight=True),
    Mark("cost $5", -0.1, -0.2, 0.05),
    Mark("open end", 0.1, 0.05, math.nan),
    Mark("never ran", math.nan, math.nan, math.nan),
]
KINDS = ("own", *(f"algorithm {number}" for number in range(10)))
DRAWINGS: dict[str, Callable[[], str]] = {
    "dots": lambda: dots("A <title>", "gain", MARKS),
    "bars": lambda: bars("A <title>", "gain", MARKS),
    "nothing": lambda: dots("A <title>", "gain", []),
    "curve": lambda: curve(
        {"over": {1: (1.0, 0.9, 1.1), 4: (1.5, 1.4, 1.8)}, "mate": {1: (0.8, 0.7, 0.9)}},
        "A <title>", "x", "y",
    ),
    "steps": lambda: steps({"a": [(0, 1.0), (5, 0.8)], "b": [(0, 1.0)]}, "A <title>", "x", "y"),
    "boxes": lambda: boxes("A <title>", "x", {"a": [1.0, 1.1, 0.9], "b": [0.8]}, 1.0),
    "heat map": lambda: heat_map(
        "A <title>", "x", "y", ["1", "2"], ["r"], [["chain", "linear"]], [["c", "l"]]
    ),
    "many kinds": lambda: heat_map(
        "A <title>", "x", "y", list(KINDS), ["r"], [list(KINDS)], [["+1"] * len(KINDS)], "own"
    ),
}  # fmt: skip


@pytest.fixture(params=list(DRAWINGS))
def draw(request: pytest.FixtureRequest) -> Callable[[], str]:
    return DRAWINGS[request.param]


def test_it_is_one_element_with_its_title(draw: Callable[[], str]) -> None:
    root = ElementTree.fromstring(draw())
    assert root.tag == f"{SVG}svg"
    assert root.attrib["aria-label"] == "A <title>"
    assert "width" not in root.attrib
    assert "A <title>" in words(root)


def test_it_takes_the_colour_of_the_page(draw: Callable[[], str]) -> None:
    text = draw()
    assert "currentColor" in text
    assert "#010203" not in text
    assert "#ffffff" not in text


def test_the_same_data_give_the_same_text(draw: Callable[[], str]) -> None:
    assert draw() == draw()


def test_two_drawings_on_a_page_do_not_share_named_parts() -> None:
    # What has a name is named by the hash of its shape: the same name is the same thing.
    for name in DRAWINGS:
        root = ElementTree.fromstring(DRAWINGS[name]())
        named = {e.attrib["id"] for e in root.iter() if "id" in e.attrib}
        assert all("_" not in name for name in named)


def test_labels_and_notes_are_text() -> None:
    found = words(ElementTree.fromstring(DRAWINGS["dots"]()))
    assert {"limit=64k & <b>", "cost $5", "never ran", "n = 20"} <= set(found)


def test_a_bar_is_as_long_as_its_value() -> None:
    def width(value: float) -> float:
        marks = [Mark("a", value, math.nan, math.nan), Mark("b", 8.0, math.nan, math.nan)]
        text = bars("t", "x", marks)
        lengths = []
        for path in ElementTree.fromstring(text).iter(f"{SVG}path"):
            if "opacity: 0.5" in path.attrib.get("style", ""):
                points = path.attrib["d"].replace("L", "M").split("M")
                xs = [float(point.split()[0]) for point in points if point.strip(" z\n")]
                lengths.append(max(xs) - min(xs))
        return lengths[0] / lengths[1]

    assert width(2.0) == pytest.approx(0.25, rel=1e-3)
    assert width(4.0) == pytest.approx(0.5, rel=1e-3)


def test_an_open_end_is_an_arrow() -> None:
    def markers(end: float) -> int:
        # The first row keeps the axis, and with it the number of ticks, as it is.
        text = dots("t", "x", [Mark("a", 1.0, 0.0, 3.0), Mark("b", 1.0, 0.5, end)])
        return len(list(ElementTree.fromstring(text).iter(f"{SVG}use")))

    assert markers(math.nan) == markers(2.0) + 1


def test_no_two_kinds_look_the_same() -> None:
    root = ElementTree.fromstring(DRAWINGS["many kinds"]())
    hatches = {path for pattern in root.iter(f"{SVG}pattern") for path in pattern}
    styles = [p.attrib.get("style", "") for p in root.iter(f"{SVG}path") if p not in hatches]
    filled = [style for style in styles if "fill: none" not in style]  # data
    looks = Counter(style for style in filled if "opacity" in style)
    assert list(looks.values()) == [2] * len(KINDS), "each in its cell and in the legend"


def words(root: ElementTree.Element) -> list[str]:
    return ["".join(text.itertext()).strip() for text in root.iter(f"{SVG}text")]
