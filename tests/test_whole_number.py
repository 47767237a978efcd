"""Numbers that users type: whole, in ASCII digits, and within bounds."""

from __future__ import annotations

import pytest

from autotune.wording import whole_number


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("7", 7), ("007", 7), ("0" * 5000 + "7", 7), ("100", 100)]
)
def test_digits_are_a_number(text: str, number: int) -> None:
    assert whole_number(text, 100) == number


@pytest.mark.parametrize(
    "text", ["", " 7", "-1", "+1", "1.0", "101", "9" * 5000, "\u00b2", "\u0663"]
)
def test_anything_else_is_none(text: str) -> None:
    assert whole_number(text, 100) is None
