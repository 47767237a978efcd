"""The page of the check lists every finding."""

from __future__ import annotations

from pathlib import Path

from autotune.check.registry import RULES

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "check.md"


def test_the_page_lists_each_finding_with_its_cost() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = [f"| `{rule.code}` | {rule.weight.title} | {rule.summary} |" for rule in RULES]
    assert [row for row in rows if row not in text] == []
