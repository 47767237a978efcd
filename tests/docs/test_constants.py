"""Figures of the documentation that are constants of the code have today's values."""

from __future__ import annotations

import pytest

from docs.builders import PAGES, constants
from tests.case_table import case_table

TEXT = "up to {}<!-- = autotune.measurement.budget.SearchPlan.finalists --> of them"
LOOKS = "({}<!-- = autotune.stats.sequential.LOOKS -->)"
BLOCK = "<!-- begin: 7 * autotune.stats.sequential.__name__[:1] -->\n{}\n<!-- end -->"


def test_each_page_says_what_the_code_does() -> None:
    """Pages that do not are written anew by ``python -m docs.builders``."""
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES}
    assert not [page for page, text in texts.items() if constants.inject(text) != text]


@case_table(
    ("text", "figure", "value"),
    [
        *((TEXT, "1,700.5", "3"), (TEXT, "seven", "three"), (TEXT, "3.0", "3.0")),
        ("a {}<!-- = autotune.study.fresh_pairs.FRESH_ERROR -->", "half", "third"),
        ("{}<!-- = 2 * autotune.stats.racing.finalists(most) -->", "9", "6"),
        (LOOKS, "7, 1, 2,\n  3, 4, 5", "7, 8, 12,\n  18, 27, 40"),
        (BLOCK, "old", "aaaaaaa"),
    ],
)
def test_a_figure_gets_the_value_of_the_name(text: str, figure: str, value: str) -> None:
    assert constants.inject(text.format(figure)) == text.format(value)
    assert constants.inject(text.format(value)) == text.format(value)


@pytest.mark.parametrize("figures", ["many", "1, 2"])
def test_a_mark_without_its_figures_ends_the_build(figures: str) -> None:
    with pytest.raises(ValueError):
        constants.inject(TEXT.format(3) + LOOKS.format(figures))
