"""docs/explanation/strategies.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from autotune.strategies import describe, find
from autotune.strategies.options import complete

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "explanation" / "strategies.md").read_text()


def test_the_option_tables_are_the_generated_ones() -> None:
    between = TEXT.split("describe() -->")[1].split("<!-- end -->")[0]
    assert between.strip() == describe().strip()


def test_the_words_about_the_plain_search_match_its_defaults() -> None:
    values = complete("ga", find("ga").options)
    features = TEXT.split("## The genetic search")[1].split("\n- **")
    [breeds] = (text for text in features if text.startswith("It breeds"))
    [waits] = (text for text in features if text.startswith("It waits"))
    [population] = (text for text in features if text.startswith("The population"))
    [first] = (text for text in features if "`init_min`" in text)
    assert re.findall(r"\d+", breeds)[0] == str(values["breed"])
    assert re.findall(r"\d+", waits)[:2] == [str(values["patience"]), str(values["ei_patience"])]
    assert re.findall(r"\d+", first)[:2] == [str(values["init_min"]), str(values["init_max"])]
    assert (values["population"], values["tournament"]) == (10, 5)
    assert "ten" in re.findall(r"\w+", population)
    assert "five" in re.findall(r"\w+", breeds)
