"""Numbers that users type: whole, in ASCII digits, and within bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.errors import UsageError
from autotune.store import Store
from autotune.terminal.render import WIDTH, width
from autotune.wording import whole_number
from tests.case_table import case_table
from tests.refusals import refused


@case_table(
    ("text", "number"), [("0", 0), ("7", 7), ("007", 7), ("0" * 5000 + "7", 7), ("100", 100)]
)
def test_digits_are_a_number(text: str, number: int) -> None:
    assert whole_number(text, 100) == number


@case_table("text", ["", " 7", "-1", "+1", "1.0", "101", "9" * 5000, "\u00b2", "\u0663"])
def test_anything_else_is_none(text: str) -> None:
    assert whole_number(text, 100) is None


def test_no_number_of_a_user_ends_in_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5,000 digits: more than Python reads as a number."""
    monkeypatch.setenv("COLUMNS", "9" * 5000)
    assert width() in (None, WIDTH)
    with Store.open(tmp_path / "runs.db") as store, refused(UsageError, "study.unknown"):
        store.find_study("9" * 5000)
