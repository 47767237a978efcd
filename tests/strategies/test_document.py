"""docs/explanation/strategies.md says what the code does."""

from __future__ import annotations

from pathlib import Path

from autotune.strategies import describe, find
from autotune.strategies.options import complete

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "explanation" / "strategies.md").read_text()


def test_the_option_tables_are_the_generated_ones() -> None:
    between = TEXT.split("describe() -->")[1].split("<!-- end -->")[0]
    assert between.strip() == describe().strip()


def test_the_words_about_the_plain_search_match_its_defaults() -> None:
    values = complete("ga", find("ga").options)
    assert f"**It breeds {values['breed']} children" in TEXT
    assert f"**It waits {values['patience']} generations**" in TEXT
    assert f"without a new best; {values['ei_patience']} (`ei_patience`)" in TEXT
    assert f"by {values['init_min']} to {values['init_max']} parameters" in TEXT
    assert (values["population"], values["tournament"]) == (10, 5)
    assert "are the ten best individuals so far" in TEXT
    assert "a tournament of five" in TEXT
