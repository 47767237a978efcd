"""The contrast of the page's colours, computed from its style sheet."""

from __future__ import annotations

import re

import pytest

from autotune.ui.app import static_files

TEXT = ("text", "muted", "link", "good", "warn", "bad")
BELOW = ("background", "panel")
LEAST = 4.5
LEAST_OF_MARKS = 3.0


def schemes() -> dict[str, dict[str, str]]:
    """The colours of the light and the dark page, by name."""
    sheet = static_files()["ui.css"]
    light, dark = re.findall(r":root \{(.*?)\}", sheet, re.DOTALL)[:2]
    return {
        name: dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6});", part))
        for name, part in (("light", light), ("dark", dark))
    }


def luminance(colour: str) -> float:
    """Relative luminance of sRGB (WCAG 2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_measure_itself() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_is_readable(scheme: str) -> None:
    colours = schemes()[scheme]
    for below in BELOW:
        for text in TEXT:
            assert contrast(colours[text], colours[below]) >= LEAST, (text, below)
        assert contrast(colours["focus"], colours[below]) >= LEAST_OF_MARKS


def test_the_style_sheet_has_no_other_colours() -> None:
    sheet = static_files()["ui.css"]
    rules = re.sub(r":root \{.*?\}", "", sheet, flags=re.DOTALL)
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[;\s])", rules)
    assert set(schemes()["light"]) == set(schemes()["dark"])
